package import Larder
import LarderTime
import Synchronization

/// A process lock for tests. Each handle stands for a process, and the test can take the lock as a further process.
///
///     let lock = ManualProcessLock()
///     configuration.outboxLock = lock.handle()
///     lock.seize()      // another process sends
///     lock.release()
///
/// Safe from any thread.
package final class ManualProcessLock: Sendable {
    private struct State {
        var holder: UInt64?
        var lastHandle: UInt64 = 0
        var rejections = 0
        var takes = 0
        var watchers: [(condition: @Sendable (_ isHeld: Bool, _ rejections: Int) -> Bool, pending: Pending<Bool>)] = []

        /// Removes and returns the waiters whose condition holds.
        mutating func satisfiedWaiters() -> [Pending<Bool>] {
            let (isHeld, count) = (holder != nil, rejections)
            let awake = watchers.filter { $0.condition(isHeld, count) }.map(\.pending)
            watchers.removeAll { $0.condition(isHeld, count) }
            return awake
        }
    }

    private final class Handle: ProcessLock {
        private let owner: ManualProcessLock
        private let number: UInt64

        init(_ owner: ManualProcessLock, _ number: UInt64) {
            self.owner = owner
            self.number = number
        }

        func take() -> Bool { owner.take(number) }

        func release() { owner.release(number) }
    }

    private let state = Mutex(State())
    private static let test: UInt64 = 0

    /// A free lock.
    package init() {}

    /// The lock as seen by a further process.
    package func handle() -> any ProcessLock {
        let number = state.withLock { state in
            state.lastHandle += 1
            return state.lastHandle
        }
        return Handle(self, number)
    }

    /// Takes the lock for the test. Returns false if it is held.
    @discardableResult
    package func seize() -> Bool { take(Self.test) }

    /// Releases the lock that `seize` has taken.
    package func release() { release(Self.test) }

    /// Whether the lock is held.
    package var isHeld: Bool { state.withLock { $0.holder != nil } }

    /// The number of failed attempts to take it.
    package var rejections: Int { state.withLock { $0.rejections } }

    /// The number of successful attempts to take it.
    package var takes: Int { state.withLock { $0.takes } }

    /// Waits for a total number of failed attempts. Returns at once if the calling task is cancelled.
    package func waitForRejections(_ count: Int) async { await wait { _, rejections in rejections >= count } }

    /// Waits until the lock is free. Returns at once if the calling task is cancelled.
    package func waitUntilFree() async { await wait { isHeld, _ in !isHeld } }

    private func wait(until condition: @escaping @Sendable (Bool, Int) -> Bool) async {
        let pending = Pending<Bool>()
        let awake = state.withLock { state in
            state.watchers.append((condition, pending))
            return state.satisfiedWaiters()
        }
        for waiter in awake { waiter.finish(true) }
        _ = await pending.value(ifCancelled: false)
    }

    private func take(_ number: UInt64) -> Bool {
        let (isTaken, awake) = state.withLock { state -> (Bool, [Pending<Bool>]) in
            guard state.holder == nil || state.holder == number else {
                state.rejections += 1
                return (false, state.satisfiedWaiters())
            }
            if state.holder == nil { state.takes += 1 }
            state.holder = number
            return (true, [])
        }
        for waiter in awake { waiter.finish(true) }
        return isTaken
    }

    private func release(_ number: UInt64) {
        let awake = state.withLock { state -> [Pending<Bool>] in
            if state.holder == number { state.holder = nil }
            return state.satisfiedWaiters()
        }
        for waiter in awake { waiter.finish(true) }
    }
}
