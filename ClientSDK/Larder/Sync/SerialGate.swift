import Synchronization

/// Lets one task through at a time, in the order in which they came. Safe from any task.
final class SerialGate: Sendable {
    private struct State {
        var isTaken = false
        var waiters: [(id: UInt64, continuation: CheckedContinuation<Bool, Never>)] = []
        var lastID: UInt64 = 0
        var cancelled: Set<UInt64> = []
    }

    private let state = Mutex(State())

    /// Runs `body` when those who came before have left.
    ///
    /// - Throws: what `body` throws, or `.cancelled` while it waits.
    func run<Result>(_ body: () async throws(LarderError) -> Result) async throws(LarderError) -> Result {
        guard await enter() else { throw LarderError(CancellationError()) }
        defer { leave() }
        return try await body()
    }

    private func enter() async -> Bool {
        let id = state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isReady = state.withLock { state -> Bool? in
                    if state.cancelled.remove(id) != nil { return false }
                    if !state.isTaken {
                        state.isTaken = true
                        return true
                    }
                    state.waiters.append((id, continuation))
                    return nil
                }
                if let isReady { continuation.resume(returning: isReady) }
            }
        } onCancel: {
            let waiter = state.withLock { state -> CheckedContinuation<Bool, Never>? in
                guard let index = state.waiters.firstIndex(where: { $0.id == id }) else {
                    // It has not come to wait yet, or is through: the first is told when it comes.
                    state.cancelled.insert(id)
                    return nil
                }
                return state.waiters.remove(at: index).continuation
            }
            waiter?.resume(returning: false)
        }
    }

    private func leave() {
        let next = state.withLock { state -> CheckedContinuation<Bool, Never>? in
            guard !state.waiters.isEmpty else {
                state.isTaken = false
                state.cancelled = []
                return nil
            }
            return state.waiters.removeFirst().continuation
        }
        next?.resume(returning: true)
    }
}
