extension RetryPolicy {
    /// Limits the share of retries among all requests with a token bucket: requests fill it, retries empty it.
    ///
    /// Without it, retries multiply the load of a failing server. Of `n` requests at most `share × n + reserve` are
    /// retried.
    public struct Budget: Sendable, Hashable {
        /// The tokens that each request adds: 0.1 allows one retry for ten requests.
        public let share: Double
        /// The maximum and initial number of tokens.
        public let reserve: Double
        private var tokens: Double

        /// Creates a full bucket.
        ///
        /// - Parameters: negative and non-finite values are replaced by 0.
        public init(share: Double = 0.1, reserve: Double = 10) {
            self.share = share > 0 && share.isFinite ? share : 0
            self.reserve = reserve > 0 && reserve.isFinite ? reserve : 0
            tokens = self.reserve
        }

        /// Counts a first attempt.
        public mutating func deposit() { tokens = min(max(reserve, 1), tokens + share) }

        /// Takes a token for a retry; false if there is none.
        public mutating func withdraw() -> Bool {
            // Ten deposits of 0.1 are slightly less than 1.
            guard tokens >= 1 - 1e-9 else { return false }
            tokens = max(0, tokens - 1)
            return true
        }

        /// The number of retries that are possible now.
        public var available: Int { Int(tokens + 1e-9) }
    }
}
