public import Larder
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
        Handle(
            self,
            state.withLock { state in
                state.lastHandle += 1
                return state.lastHandle
            }
        )
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

    private func take(_ number: UInt64) -> Bool {
        state.withLock { state in
            guard state.holder == nil || state.holder == number else {
                state.refusals += 1
                return false
            }
            if state.holder == nil { state.takes += 1 }
            state.holder = number
            return true
        }
    }

    private func release(_ number: UInt64) { state.withLock { if $0.holder == number { $0.holder = nil } } }
}
