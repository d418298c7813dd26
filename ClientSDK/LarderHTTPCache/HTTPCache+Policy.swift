extension HTTPCache {
    /// The choices that RFC 9111 leaves to a cache.
    public struct Policy: Sendable, Hashable {
        /// Whether `Authorization` selects among responses even without a `Vary` of the server (§3.5).
        ///
        /// May be turned off for a cache that is used by one account only.
        public var separatesByAuthorization = true
        /// The share of the time since `Last-Modified` for which a response without a stated lifetime is fresh (§4.2.2).
        /// Less than 0 counts as 0, more than 1 as 1.
        public var heuristicFraction = 0.1
        /// The maximum heuristic lifetime.
        public var heuristicMaximum: Duration = .seconds(86_400)
        /// How long a stale response may be used instead of an error if the server states no `stale-if-error` (RFC
        /// 5861 §4, RFC 9111 §4.2.4). Has no effect where the server forbids it.
        public var staleIfError: Duration = .zero
        /// Whether a 200 without lifetime and validator is stored for use while offline.
        public var keepsForOffline = true
        /// The maximum size of stored content, in bytes. Negative values count as 0.
        public var bodyBytesMaximum = 16 << 20
        /// The maximum size of stored fields, in bytes. Negative values count as 0.
        public var fieldBytesMaximum = 64 << 10
        /// The maximum length of a URL whose responses are stored, in bytes. Negative values count as 0.
        public var urlBytesMaximum = 4 << 10
        /// The maximum number of stored responses of one URL; the oldest is removed. Values below 1 count as 1.
        public var variantsMaximum = 16

        /// Creates the default policy.
        public init() {}
    }
}
