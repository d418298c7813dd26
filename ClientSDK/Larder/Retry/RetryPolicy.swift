public import LarderHTTP
public import LarderTime

/// When to send a request again: exponential backoff with full jitter, within limits.
///
/// A pure value. Whether and how long to wait depends on nothing but what `decision` is told, and on the numbers it draws.
public struct RetryPolicy: Sendable, Hashable {
    /// How often a request is sent at most, the first time included; 1 never repeats.
    public var attemptsMaximum: Int
    /// How long all attempts and waits may take together. No wait begins that would end later.
    public var elapsedMaximum: Duration
    /// The longest wait before the first repetition; it doubles with each.
    public var base: Duration
    /// Where the doubling ends.
    public var ceiling: Duration

    /// A policy.
    ///
    /// - Parameters: absurd values are taken for the nearest that make sense: at least one attempt, no negative time.
    public init(
        attemptsMaximum: Int = 4,
        elapsedMaximum: Duration = .seconds(60),
        base: Duration = .milliseconds(250),
        ceiling: Duration = .seconds(20)
    ) {
        self.attemptsMaximum = max(1, attemptsMaximum)
        self.elapsedMaximum = max(.zero, elapsedMaximum)
        self.base = max(.zero, base)
        self.ceiling = max(.zero, ceiling)
    }

    /// Sends everything once.
    public static let never = RetryPolicy(attemptsMaximum: 1)

    /// What an attempt has come to.
    public enum Outcome: Sendable {
        /// A reply; its content does not matter.
        case reply(Status, Fields)
        /// None.
        case failure(TransportError)
    }

    /// What to do after an attempt.
    public enum Decision: Sendable, Hashable, CustomStringConvertible {
        /// Send it again after that time.
        case retry(after: Duration)
        /// Leave it at what came.
        case stop(Reason)

        /// The decision in a sentence.
        public var description: String {
            switch self {
            case .retry(let wait): "It is sent again in \(wait)."
            case .stop(.answered): "It was answered."
            case .stop(.permanent): "The same request would be refused again."
            case .stop(.unsafe): "To repeat it might do twice what was asked for once: give it an Idempotency-Key."
            case .stop(.attempts): "It was sent as often as the policy allows."
            case .stop(.elapsed): "The next attempt would begin later than the policy allows."
            case .stop(.budget): "Too large a share of all requests are repetitions already."
            }
        }
    }

    /// Why a request is not sent again.
    public enum Reason: Sendable, Hashable {
        /// It has its answer.
        case answered
        /// The same again would be refused again.
        case permanent
        /// It might be carried out twice.
        case unsafe
        /// It was sent as often as may be.
        case attempts
        /// The wait would be too long.
        case elapsed
        /// Repetitions have used their share up.
        case budget
    }

    /// Whether doing it twice does no more than doing it once: by its method (RFC 9110 §9.2.2), or by its idempotency key.
    public static func isRepeatable(_ request: TransportRequest) -> Bool {
        request.method.isIdempotent || !(request.fields[.idempotencyKey] ?? "").isEmpty
    }

    /// Decides what to do after an attempt. The budget is not asked: see `RetryBudget`.
    ///
    /// - Parameters:
    ///   - attempt: which it was; the first is 1.
    ///   - elapsed: how long it has all taken so far.
    ///   - now: the wall time, for a `Retry-After` that is a date.
    ///   - random: where the jitter comes from. One number is drawn where it waits, none otherwise.
    public func decision(
        after outcome: Outcome,
        to request: TransportRequest,
        attempt: Int,
        elapsed: Duration,
        now: WallTime,
        random: inout some RandomNumberGenerator
    ) -> Decision {
        let verdict =
            switch outcome {
            case .reply(let status, let fields): RetryVerdict(status: status, fields: fields, to: request)
            case .failure(let error): RetryVerdict(error)
            }
        switch verdict {
        case .answered: return .stop(.answered)
        case .permanent: return .stop(.permanent)
        case .transient, .foreign: guard Self.isRepeatable(request) else { return .stop(.unsafe) }
        case .unsent: break
        }
        guard attempt < attemptsMaximum else { return .stop(.attempts) }
        var wait = backoff(attempt: attempt, random: &random)
        // What a foreigner asks for binds nobody. What the server asks for is a minimum; the jitter on top of it keeps those
        // who were all told the same from coming back together.
        if case .reply(_, let fields) = outcome, verdict != .foreign, let asked = RetryAfterField.wait(fields, now: now)
        {
            wait += asked
        }
        guard elapsed + wait <= elapsedMaximum else { return .stop(.elapsed) }
        return .retry(after: wait)
    }

    /// The longest wait after an attempt: `base` doubled for each attempt before it, up to `ceiling`.
    public func backoffMaximum(attempt: Int) -> Duration {
        var longest = min(base, ceiling)
        guard longest > .zero else { return .zero }
        var doublings = max(0, attempt - 1)
        while doublings > 0 && longest != ceiling {
            longest = min(longest * 2, ceiling)
            doublings -= 1
        }
        return longest
    }

    /// A wait between nothing and the longest, each as likely as the other ("full jitter").
    func backoff(attempt: Int, random: inout some RandomNumberGenerator) -> Duration {
        let longest = backoffMaximum(attempt: attempt).nanosecondsSaturating
        return .nanoseconds(Int64.random(in: 0...max(0, longest), using: &random))
    }
}
