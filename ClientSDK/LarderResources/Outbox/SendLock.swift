import LarderStorage
import Synchronization

/// Holds the process lock of an outbox while anything is being sent, so that one process sends at a time.
///
/// Safe from any thread.
final class SendLock: Sendable {
    private struct State {
        var users = 0
        var isClosed = false
    }

    private let lock: (any ProcessLock)?
    private let state = Mutex(State())

    /// - Parameter lock: nil if no other process can open the outbox.
    init(_ lock: (any ProcessLock)?) { self.lock = lock }

    deinit { if state.withLock({ $0.users > 0 }) { lock?.release() } }

    /// Adds a user of the lock and takes the lock for the first one; false if another process holds it.
    func enter() throws -> Bool {
        try state.withLock { state in
            guard !state.isClosed else { return false }
            if state.users == 0, let lock, try !lock.take() { return false }
            state.users += 1
            return true
        }
    }

    /// Adds a user of a lock that is held.
    func share() { state.withLock { $0.users += 1 } }

    /// Removes a user; the last one releases the lock.
    func leave() {
        state.withLock { state in
            state.users -= 1
            if state.users == 0, !state.isClosed { lock?.release() }
        }
    }

    /// Releases the lock for good, as process death would: operations in flight are marked and in doubt.
    func close() {
        state.withLock { state in
            guard !state.isClosed else { return }
            state.isClosed = true
            if state.users > 0 { lock?.release() }
        }
    }
}
