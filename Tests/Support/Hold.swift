import Foundation
import Synchronization

/// Blocks threads until `open` is called.
package final class Hold: Sendable {
    private let condition = NSCondition()
    private let isOpen = Mutex(false)

    package init() {}

    package func wait() {
        condition.lock()
        while !isOpen.withLock({ $0 }) { condition.wait() }
        condition.unlock()
    }

    package func open() {
        condition.lock()
        isOpen.withLock { $0 = true }
        condition.broadcast()
        condition.unlock()
    }
}
