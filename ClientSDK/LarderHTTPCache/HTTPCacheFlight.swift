import LarderTransport
import Synchronization

/// One exchange that several requests share.
///
/// It is cancelled when the last waiting request leaves, unless it was begun in the background.
final class HTTPCacheFlight: Sendable {
    typealias Outcome = Result<HTTPCache.Response, TransportError>

    private struct State {
        var lastID: UInt64 = 0
        var participants: Set<UInt64> = []
        var waiters: [UInt64: CheckedContinuation<Outcome, Never>] = [:]
        var outcome: Outcome?
        var task: Task<Void, Never>?
        var isAbandoned = false
    }

    private let state = Mutex(State())
    private let isBackground: Bool

    init(isBackground: Bool) { self.isBackground = isBackground }

    /// Begins the exchange. Must be called once.
    func begin(_ run: @escaping @Sendable () async -> Outcome) {
        let task = Task { finish(await run()) }
        let isAbandoned = state.withLock { state in
            state.task = task
            return state.isAbandoned
        }
        if isAbandoned { task.cancel() }
    }

    /// Joins the exchange; nil if it was cancelled.
    func join() -> UInt64? {
        state.withLock { state in
            guard !state.isAbandoned else { return nil }
            state.lastID += 1
            state.participants.insert(state.lastID)
            return state.lastID
        }
    }

    /// The number of waiting requests.
    var waiterCount: Int { state.withLock { $0.waiters.count } }

    /// Waits for the outcome or the cancellation of the waiting task.
    func outcome(for id: UInt64) async -> Outcome {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let known: Outcome? = state.withLock { state in
                    if let outcome = state.outcome { return outcome }
                    // Cancelled before waiting began.
                    guard state.participants.contains(id) else { return .failure(Self.cancelled) }
                    state.waiters[id] = continuation
                    return nil
                }
                if let known { continuation.resume(returning: known) }
            }
        } onCancel: {
            leave(id)
        }
    }

    /// Waits until the exchange is over without joining it.
    func end() async { await state.withLock { $0.task }?.value }

    private func leave(_ id: UInt64) {
        let (waiter, task) = state.withLock { state in
            state.participants.remove(id)
            let waiter = state.waiters.removeValue(forKey: id)
            guard state.participants.isEmpty, state.outcome == nil, !isBackground else {
                return (waiter, nil as Task<Void, Never>?)
            }
            state.isAbandoned = true
            return (waiter, state.task)
        }
        task?.cancel()
        waiter?.resume(returning: .failure(Self.cancelled))
    }

    private func finish(_ outcome: Outcome) {
        let waiters = state.withLock { state in
            state.outcome = outcome
            defer { state.waiters = [:] }
            return Array(state.waiters.values)
        }
        for waiter in waiters { waiter.resume(returning: outcome) }
    }

    private static var cancelled: TransportError { TransportError(.cancelled, "The caller does not wait any more.") }
}
