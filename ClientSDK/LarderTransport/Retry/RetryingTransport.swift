public import LarderTime
import Synchronization

/// Retries transient failures over another transport, within a `RetryPolicy` and a `Budget`.
///
/// A request that is not idempotent is sent once, and so is one whose body was read and can be read only once; the description of its
/// error says so. The outcome of the last attempt is returned unchanged, for example a
/// 503. `open` retries until it has a head; truncated content is not requested again. The budget is shared by all
/// requests. Safe from any task. A cancelled wait throws `.cancelled` immediately.
public final class RetryingTransport: Transport {
    private struct State {
        var budget: RetryPolicy.Budget
        var random: any RandomNumberGenerator & Sendable
    }

    private let transport: any Transport
    private let policy: RetryPolicy
    private let clock: any MonotonicClock & Sleeper
    private let wall: any WallClock
    private let state: Mutex<State>

    /// - Parameters:
    ///   - transport: sends the requests.
    ///   - policy: when to retry.
    ///   - budget: the limit for all requests together.
    ///   - clock: used for elapsed times and waits.
    ///   - wall: used for a `Retry-After` with a date.
    ///   - random: the source of the jitter.
    public init(
        _ transport: any Transport,
        policy: RetryPolicy = RetryPolicy(),
        budget: RetryPolicy.Budget = RetryPolicy.Budget(),
        clock: any MonotonicClock & Sleeper = SystemMonotonicClock(),
        wall: any WallClock = SystemWallClock(),
        random: any RandomNumberGenerator & Sendable = SystemRandomNumberGenerator()
    ) {
        self.transport = transport
        self.policy = policy
        self.clock = clock
        self.wall = wall
        state = Mutex(State(budget: budget, random: random))
    }

    /// The number of retries that the budget allows now.
    public var retriesLeft: Int { state.withLock { $0.budget.available } }

    /// Sends a request with retries and returns the last response.
    public func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        try await repeating(request) { () async throws(TransportError) in
            try await self.transport.send(request)
        } judging: {
            .reply($0.status, $0.fields)
        }
    }

    /// Opens a response with retries. Responses of earlier attempts are closed.
    public func open(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
        try await repeating(request) { () async throws(TransportError) in
            try await self.transport.open(request)
        } judging: {
            .reply($0.status, $0.fields)
        }
    }

    private func repeating<Reply>(
        _ request: TransportRequest,
        _ attempt: () async throws(TransportError) -> Reply,
        judging: (Reply) -> RetryPolicy.Outcome
    ) async throws(TransportError) -> Reply {
        state.withLock { $0.budget.deposit() }
        let start = clock.uptime
        var count = 1
        while true {
            let wait: Duration
            do throws(TransportError) {
                let reply = try await attempt()
                guard let next = pause(after: judging(reply), request, count, start) else { return reply }
                wait = next
            } catch {
                guard let next = pause(after: .failure(error), request, count, start) else {
                    throw explained(error, request)
                }
                wait = next
            }
            do { try await clock.sleep(until: clock.uptime + wait) } catch {
                throw TransportError(.cancelled, "The request was cancelled while it waited for a retry.")
            }
            count += 1
        }
    }

    /// Adds why a failure that would be retried is not.
    private func explained(_ error: TransportError, _ request: TransportRequest) -> TransportError {
        guard let upload = request.upload, !upload.canBeSent, RetryPolicy.isRepeatable(request),
            [.transient, .unsent].contains(RetryVerdict(error))
        else { return error }
        let reason = RetryPolicy.Decision.stop(.body).description
        return TransportError(error.code, "\(error.description) \(reason)", retryAfter: error.retryAfter)
    }

    /// The time until the next attempt; nil if there is none.
    private func pause(
        after outcome: RetryPolicy.Outcome,
        _ request: TransportRequest,
        _ attempt: Int,
        _ start: MonotonicTime
    ) -> Duration? {
        let (elapsed, now) = (clock.uptime - start, wall.now)
        return state.withLock { state in
            var random = AnyRandom(state.random)
            let decision = policy.decision(
                after: outcome,
                to: request,
                attempt: attempt,
                elapsed: elapsed,
                now: now,
                random: &random
            )
            state.random = random.source
            guard case .retry(let wait) = decision, state.budget.withdraw() else { return nil }
            return wait
        }
    }
}
