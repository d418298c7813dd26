import LarderTime
import Synchronization

/// A request on its way, and those who wait for it. It survives those who give up, and is cancelled when the last one has.
///
/// Safe from any thread.
final class Flight: Sendable {
    private struct State {
        var holders = 1
        var waiters: [UInt64: CheckedContinuation<Result<Void, LarderError>, Never>] = [:]
        var lastWaiter: UInt64 = 0
        var result: Result<Void, LarderError>?
        /// Whether its answer is being stored: it is not given up any more.
        var isClaimed = false
        var task: Task<Void, Never>?
    }

    /// Its place in the order of requests.
    let order: UInt64
    /// When it began: what its answer says was true at some time after that.
    let moment: Moment
    /// How long it may take; nil: without a limit.
    let timeout: Duration?
    /// Whether its answer comes from the origin, and from no cache on the way (`FetchContext.mustRevalidate`).
    let revalidates: Bool
    private let state = Mutex(State())
    private let onAbandoned: @Sendable (Flight) -> Void

    /// - Parameter onAbandoned: called when the last holder has left before there was an answer.
    init(
        order: UInt64,
        moment: Moment,
        timeout: Duration? = nil,
        revalidates: Bool = false,
        onAbandoned: @escaping @Sendable (Flight) -> Void
    ) {
        self.order = order
        self.moment = moment
        self.timeout = timeout
        self.revalidates = revalidates
        self.onAbandoned = onAbandoned
    }

    /// The task that carries it out.
    func run(_ task: Task<Void, Never>) {
        let isLate = state.withLock { state in
            state.task = task
            return state.holders == 0
        }
        if isLate { task.cancel() }
    }

    /// Takes part. False where everybody had left before.
    func hold() -> Bool {
        state.withLock { state in
            guard state.holders > 0 else { return false }
            state.holders += 1
            return true
        }
    }

    /// Takes part no more.
    func leave() {
        let abandoned = state.withLock { state -> Task<Void, Never>?? in
            state.holders -= 1
            guard state.holders == 0, state.result == nil, !state.isClaimed else { return nil }
            state.result = .failure(LarderError(.cancelled, "Nobody waits for the request any more."))
            return .some(state.task)
        }
        guard let abandoned else { return }
        abandoned?.cancel()
        onAbandoned(self)
    }

    /// Waits for the answer, as one who takes part.
    ///
    /// - Throws: what the request failed with, or `.cancelled` as soon as the calling task is.
    func wait() async throws(LarderError) {
        let id = state.withLock { state in
            state.lastWaiter += 1
            return state.lastWaiter
        }
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let ready = state.withLock { state -> Result<Void, LarderError>? in
                    if let result = state.result { return result }
                    if Task.isCancelled { return .failure(LarderError(CancellationError())) }
                    state.waiters[id] = continuation
                    return nil
                }
                if let ready { continuation.resume(returning: ready) }
            }
        } onCancel: {
            let waiter = state.withLock { $0.waiters.removeValue(forKey: id) }
            waiter?.resume(returning: .failure(LarderError(CancellationError())))
        }
        try result.get()
    }

    /// Whether it has ended.
    var isFinished: Bool { state.withLock { $0.result != nil } }

    /// The task that carries it out; nil before it was given.
    var task: Task<Void, Never>? { state.withLock { $0.task } }

    /// Stops it, whoever still waits.
    func cancel() { task?.cancel() }

    /// Claims the right to store its answer: from then on nobody gives it up.
    ///
    /// - Returns: false where everybody has left or it was ended. Its answer is dropped then: it has no place in the order of requests
    ///   any more, and could replace what a later request brought.
    func claim() -> Bool {
        state.withLock { state in
            guard state.result == nil else { return false }
            state.isClaimed = true
            return true
        }
    }

    /// How long one who takes part now waits at most; nil where the request ends earlier by itself, or there is no limit.
    func limit(within timeout: Duration?, at now: Moment) -> Duration? {
        guard let timeout else { return nil }
        guard let own = self.timeout else { return timeout }
        return own <= timeout || moment.uptime + own <= now.uptime + timeout ? nil : timeout
    }

    /// Ends it. Only the first end counts.
    func finish(_ result: Result<Void, LarderError>) {
        let waiters = state.withLock { state in
            guard state.result == nil else { return [CheckedContinuation<Result<Void, LarderError>, Never>]() }
            state.result = result
            defer { state.waiters = [:] }
            return Array(state.waiters.values)
        }
        for waiter in waiters { waiter.resume(returning: result) }
    }
}
