extension RetryPolicy {
    /// Limits the share of retries among all requests with a token bucket: requests fill it, retries empty it, and a retry that succeeds
    /// gives its token back.
    ///
    /// Without it, retries multiply the load of a failing server. Of `n` requests at most `share × n + reserve` are retried in vain, and
    /// one in each `interval`: while all requests are retries, nothing else fills an empty bucket.
    package struct Budget: Sendable, Hashable {
        /// The tokens that each request adds: 0.1 allows one retry for ten requests.
        package let share: Double
        /// The maximum and initial number of tokens.
        package let reserve: Double
        /// The time after which a retry needs no token.
        package let interval: Duration
        private var tokens: Double
        /// The time of the last retry, or of the first one that was refused.
        private var latest: MonotonicTime?

        /// Creates a full bucket.
        ///
        /// - Parameters: negative and non-finite values are replaced by 0.
        package init(share: Double = 0.1, reserve: Double = 10, interval: Duration = .seconds(60)) {
            self.share = share > 0 && share.isFinite ? share : 0
            self.reserve = reserve > 0 && reserve.isFinite ? reserve : 0
            self.interval = max(interval, .zero)
            tokens = self.reserve
        }

        /// Counts a first attempt.
        package mutating func deposit() { tokens = min(max(reserve, 1), tokens + share) }

        /// Takes a token for a retry; false if there is none, unless there was no retry for the interval.
        package mutating func withdraw(at now: MonotonicTime) -> Bool {
            let last = latest ?? now
            // Ten deposits of 0.1 are slightly less than 1.
            let isAllowed = tokens >= 1 - 1e-9 || latest != nil && now - last >= interval
            latest = isAllowed ? now : last
            if isAllowed { tokens = max(0, tokens - 1) }
            return isAllowed
        }

        /// Gives the token of a retry back that has succeeded, or that was not sent.
        package mutating func refund() { tokens = min(max(reserve, 1), tokens + 1) }

        /// The number of retries that are possible now.
        package var available: Int { Int(tokens + 1e-9) }
    }
}
