import Foundation
import OrderedJobs
import Synchronization

/// Stops whoever waits until `open` is called.
///
/// A task that waits lets the others run within itself, so that a callback can be held up at any place without a second thread.
package final class Hold: Sendable {
    private let condition = NSCondition()
    private let isOpen = Mutex(false)

    package init() {}

    package func wait() {
        if order_is_here() {
            return unsafe order_run_until(
                { context in
                    guard let context = unsafe context else { return true }
                    return unsafe Unmanaged<Hold>.fromOpaque(context).takeUnretainedValue().isOpen.withLock { $0 }
                },
                Unmanaged.passUnretained(self).toOpaque()
            )
        }
        condition.lock()
        while !isOpen.withLock({ $0 }) { condition.wait() }
        condition.unlock()
    }

    package func open() {
        condition.lock()
        isOpen.withLock { $0 = true }
        condition.broadcast()
        condition.unlock()
        // A task that waits on the thread of the jobs looks again.
        unsafe order_add({ _ in }, nil)
    }
}
