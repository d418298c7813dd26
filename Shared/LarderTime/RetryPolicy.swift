/// Limits and delays of retries: exponential back-off with full jitter.
///
/// A value without I/O: decisions depend only on their arguments.
public struct RetryPolicy: Sendable, Hashable {
    /// The maximum number of attempts, including the first.
    public var attemptsMaximum: Int
    /// The maximum time of all attempts and delays. A delay that would end later is not begun.
    public var elapsedMaximum: Duration
    /// The maximum delay before the first retry. It doubles with each retry.
    public var base: Duration
    /// The maximum delay before any retry.
    public var ceiling: Duration

    /// Creates a policy.
    ///
    /// - Parameters: values out of range are clamped: at least one attempt, no negative time.
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

    /// No retries.
    public static let never = RetryPolicy(attemptsMaximum: 1)

    /// The maximum delay after an attempt: `base` doubled for each earlier attempt, up to `ceiling`.
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
}
