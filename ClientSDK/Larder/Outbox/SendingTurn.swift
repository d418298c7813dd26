import Synchronization

/// Holds an outbox's lock for as long as anything is being sent, and no longer, so that another process gets its turn.
///
/// Safe from any thread.
final class SendingTurn: Sendable {
    private struct State {
        var users = 0
        var isClosed = false
    }

    private let lock: (any OutboxLock)?
    private let state = Mutex(State())

    /// - Parameter lock: nil where nobody else can reach the outbox.
    init(_ lock: (any OutboxLock)?) { self.lock = lock }

    deinit { if state.withLock({ $0.users > 0 }) { lock?.release() } }

    /// Takes part in the turn, or begins one; false where another process has it.
    func enter() throws -> Bool {
        try state.withLock { state in
            guard !state.isClosed else { return false }
            if state.users == 0, let lock, try !lock.take() { return false }
            state.users += 1
            return true
        }
    }

    /// Has somebody else take part: by one who does.
    func share() { state.withLock { $0.users += 1 } }

    /// Leaves; the last one lets the lock go.
    func leave() {
        state.withLock { state in
            state.users -= 1
            if state.users == 0, !state.isClosed { lock?.release() }
        }
    }

    /// Lets it go for good, as the death of the process would: what is still on its way has been marked, and is in doubt.
    func close() {
        state.withLock { state in
            guard !state.isClosed else { return }
            state.isClosed = true
            if state.users > 0 { lock?.release() }
        }
    }
}
