/// How large a share of all requests may be repetitions: a bucket that requests fill and repetitions empty.
///
/// When a server is down every request fails, and repeating them all multiplies the load that it has to come back under. Of
/// `n` requests at most `share × n + reserve` are repeated, whatever happens.
public struct RetryBudget: Sendable, Hashable {
    /// How much of a repetition each request pays for: 0.1 for one in ten.
    public let share: Double
    /// How many repetitions may be saved up; the bucket begins with them.
    public let reserve: Double
    private var tokens: Double

    /// A full bucket.
    ///
    /// - Parameters: what is negative or no number counts as 0.
    public init(share: Double = 0.1, reserve: Double = 10) {
        self.share = share > 0 && share.isFinite ? share : 0
        self.reserve = reserve > 0 && reserve.isFinite ? reserve : 0
        tokens = self.reserve
    }

    /// Counts a request that is sent for the first time.
    public mutating func deposit() { tokens = min(max(reserve, 1), tokens + share) }

    /// Pays for a repetition; false where there is nothing left to pay with.
    public mutating func withdraw() -> Bool {
        // Ten deposits of a tenth are a little less than one.
        guard tokens >= 1 - 1e-9 else { return false }
        tokens = max(0, tokens - 1)
        return true
    }

    /// How many repetitions there is left for.
    public var available: Int { Int(tokens + 1e-9) }
}
