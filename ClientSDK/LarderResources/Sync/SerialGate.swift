import LarderTime
import Synchronization

/// Runs one task at a time, in the order of arrival. Safe from any task.
package final class SerialGate: Sendable {
    private struct State {
        var isTaken = false
        var waiters: [(id: UInt64, turn: Pending<Bool>)] = []
        var lastID: UInt64 = 0
    }

    private let state = Mutex(State())

    package init() {}

    /// Runs `body` after all earlier calls have ended.
    ///
    /// - Throws: what `body` throws, or `.cancelled` while it waits.
    package func run<Result>(_ body: () async throws(LarderError) -> Result) async throws(LarderError) -> Result {
        guard await enter() else { throw LarderError(CancellationError()) }
        defer { leave() }
        return try await body()
    }

    private func enter() async -> Bool {
        if Task.isCancelled { return false }
        let turn = Pending<Bool>()
        let id: UInt64? = state.withLock { state in
            guard state.isTaken else {
                state.isTaken = true
                return nil
            }
            state.lastID += 1
            state.waiters.append((state.lastID, turn))
            return state.lastID
        }
        guard let id else { return true }
        return await turn.value(ifCancelled: false) { state.withLock { $0.waiters.removeAll { $0.id == id } } }
    }

    private func leave() {
        state.withLock { state in
            // A waiter that has just been cancelled is skipped.
            while !state.waiters.isEmpty { if state.waiters.removeFirst().turn.finish(true) { return } }
            state.isTaken = false
        }
    }
}
