public import LarderTime
import Synchronization

/// Sends again what failed in passing, over any transport, as a `RetryPolicy` and a `RetryBudget` allow.
///
/// What cannot be repeated safely is sent once. The last outcome is given back as it came: a reply that says 503 is a reply. Of
/// a stream only the head is tried for; content that breaks off is the reader's to ask for again. Safe from any task; the
/// budget is shared by all of them. A cancelled wait ends at once with `.cancelled`.
public final class RetryingTransport: Transport {
    private struct State {
        var budget: RetryBudget
        var random: any RandomNumberGenerator & Sendable
    }

    private let transport: any Transport
    private let policy: RetryPolicy
    private let clock: any MonotonicClock & Sleeper
    private let wall: any WallClock
    private let state: Mutex<State>

    /// - Parameters:
    ///   - transport: what sends.
    ///   - policy: when to repeat.
    ///   - budget: how much to repeat in all.
    ///   - clock: measures and waits.
    ///   - wall: for a `Retry-After` that is a date.
    ///   - random: where the jitter comes from.
    public init(
        _ transport: any Transport,
        policy: RetryPolicy = RetryPolicy(),
        budget: RetryBudget = RetryBudget(),
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

    /// How many repetitions the budget has left.
    public var retriesLeft: Int { state.withLock { $0.budget.available } }

    /// Sends a request, again if need be, and gives back the last reply.
    public func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        try await repeating(request) { () async throws(TransportError) in
            try await self.transport.send(request)
        } judging: {
            .reply($0.status, $0.fields)
        }
    }

    /// Opens a reply, again if need be. What was opened in vain is closed.
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
                guard let next = pause(after: .failure(error), request, count, start) else { throw error }
                wait = next
            }
            do { try await clock.sleep(until: clock.uptime + wait) } catch {
                throw TransportError(.cancelled, "The request was cancelled while it waited to be sent again.")
            }
            count += 1
        }
    }

    /// How long to wait before the next attempt; nil where there is none.
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

/// A generator of a type that is not known before.
struct AnyRandom: RandomNumberGenerator, Sendable {
    var source: any RandomNumberGenerator & Sendable

    init(_ source: any RandomNumberGenerator & Sendable) { self.source = source }

    mutating func next() -> UInt64 { source.next() }
}
