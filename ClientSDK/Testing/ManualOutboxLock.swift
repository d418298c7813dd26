public import Larder
import LarderTime
import Synchronization

/// An outbox's lock for tests: caches that are given handles of one lock stand for processes with one store, and a test can hold
/// it as another process would.
///
///     let lock = ManualOutboxLock()
///     configuration.outboxLock = lock.handle()
///     lock.seize()      // another process sends
///     lock.release()
///
/// Safe from any thread.
public final class ManualOutboxLock: Sendable {
    private struct State {
        var holder: UInt64?
        var lastHandle: UInt64 = 0
        var refusals = 0
        var takes = 0
        var watchers: [(isSo: @Sendable (_ isHeld: Bool, _ refusals: Int) -> Bool, pending: Pending<Bool>)] = []

        /// Who waited for what is so now.
        mutating func awake() -> [Pending<Bool>] {
            let (isHeld, count) = (holder != nil, refusals)
            let awake = watchers.filter { $0.isSo(isHeld, count) }.map(\.pending)
            watchers.removeAll { $0.isSo(isHeld, count) }
            return awake
        }
    }

    private final class Handle: OutboxLock {
        private let owner: ManualOutboxLock
        private let number: UInt64

        init(_ owner: ManualOutboxLock, _ number: UInt64) {
            self.owner = owner
            self.number = number
        }

        func take() -> Bool { owner.take(number) }

        func release() { owner.release(number) }
    }

    private let state = Mutex(State())
    private static let test: UInt64 = 0

    /// A lock that nobody has.
    public init() {}

    /// A lock as one more process has it.
    public func handle() -> any OutboxLock {
        let number = state.withLock { state in
            state.lastHandle += 1
            return state.lastHandle
        }
        return Handle(self, number)
    }

    /// Takes it as another process would; false where it is held.
    @discardableResult
    public func seize() -> Bool { take(Self.test) }

    /// Lets go of what `seize` has taken.
    public func release() { release(Self.test) }

    /// Whether anybody holds it.
    public var isHeld: Bool { state.withLock { $0.holder != nil } }

    /// How often it was asked for in vain.
    public var refusals: Int { state.withLock { $0.refusals } }

    /// How often it was taken.
    public var takes: Int { state.withLock { $0.takes } }

    /// Returns when it was asked for in vain so often in all; at once when the calling task is cancelled.
    public func waitForRefusals(_ count: Int) async { await wait { _, refusals in refusals >= count } }

    /// Returns when nobody holds it; at once when the calling task is cancelled.
    public func waitUntilFree() async { await wait { isHeld, _ in !isHeld } }

    private func wait(until isSo: @escaping @Sendable (Bool, Int) -> Bool) async {
        let pending = Pending<Bool>()
        let awake = state.withLock { state in
            state.watchers.append((isSo, pending))
            return state.awake()
        }
        for waiter in awake { waiter.finish(true) }
        _ = await pending.value(ifCancelled: false)
    }

    private func take(_ number: UInt64) -> Bool {
        let (isTaken, awake) = state.withLock { state -> (Bool, [Pending<Bool>]) in
            guard state.holder == nil || state.holder == number else {
                state.refusals += 1
                return (false, state.awake())
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
            return state.awake()
        }
        for waiter in awake { waiter.finish(true) }
    }
}
