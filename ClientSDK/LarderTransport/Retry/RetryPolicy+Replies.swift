public import LarderHTTP
public import LarderTime

extension RetryPolicy {
    /// The outcome of an attempt.
    public enum Outcome: Sendable {
        /// A response.
        case reply(Status, Fields)
        /// No response.
        case failure(TransportError)
    }

    /// The decision after an attempt.
    public enum Decision: Sendable, Hashable, CustomStringConvertible {
        /// Retry after this time.
        case retry(after: Duration)
        /// Return the outcome.
        case stop(Reason)

        /// The decision as a sentence.
        public var description: String {
            switch self {
            case .retry(let wait): "Retry in \(wait)."
            case .stop(.answered): "No retry: the response is final."
            case .stop(.permanent): "No retry: the same request would fail again."
            case .stop(.body): "No retry: the body can be read only once. Send a new request with a new body."
            case .stop(.unsafe): "No retry: the request is not idempotent. Add an Idempotency-Key."
            case .stop(.attempts): "No retry: the policy's number of attempts is reached."
            case .stop(.elapsed): "No retry: the next attempt would exceed the policy's elapsed time."
            case .stop(.budget): "No retry: the retry budget is empty."
            }
        }
    }

    /// Why a request is not retried.
    public enum Reason: Sendable, Hashable {
        /// The response is final.
        case answered
        /// The same request would fail again.
        case permanent
        /// The request is not idempotent and may have had an effect.
        case unsafe
        /// The body can be read only once, and was.
        case body
        /// `attemptsMaximum` is reached.
        case attempts
        /// The next attempt would exceed `elapsedMaximum`.
        case elapsed
        /// The retry budget is empty.
        case budget
    }

    /// Whether the request is idempotent, by its method (RFC 9110 §9.2.2) or its idempotency key.
    public static func isRepeatable(_ request: TransportRequest) -> Bool {
        request.method.isIdempotent || !(request.fields[.idempotencyKey] ?? "").isEmpty
    }

    /// Decides what to do after an attempt, without regard to a budget (`RetryPolicy.Budget`).
    ///
    /// - Parameters:
    ///   - attempt: the number of the attempt, from 1.
    ///   - elapsed: the time since the first attempt began.
    ///   - now: the wall time, for a `Retry-After` with a date.
    ///   - random: the source of the jitter. One number is drawn for a retry.
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
        guard request.upload?.canBeSent ?? true else { return .stop(.body) }
        guard attempt < attemptsMaximum else { return .stop(.attempts) }
        var wait = backoff(attempt: attempt, random: &random)
        // `Retry-After` from another server than the API's is ignored. It is a minimum; the jitter spreads clients
        // that received the same value.
        if case .reply(_, let fields) = outcome, verdict != .foreign, let asked = RetryAfterField.wait(fields, now: now)
        {
            wait += asked
        }
        guard elapsed + wait <= elapsedMaximum else { return .stop(.elapsed) }
        return .retry(after: wait)
    }
}
