extension HTTPCache {
    /// Counters of a cache.
    public struct Statistics: Sendable, Hashable {
        /// Requests to the cache. Each redirect that is followed is another one.
        public internal(set) var requests = 0
        /// Fresh responses served without the network.
        public internal(set) var hits = 0
        /// Stale responses served.
        public internal(set) var stale = 0
        /// Responses confirmed with a 304.
        public internal(set) var revalidations = 0
        /// Responses of shared exchanges.
        public internal(set) var collapsed = 0
        /// Exchanges with the server, including background validations.
        public internal(set) var exchanges = 0
        /// Stored responses.
        public internal(set) var stores = 0
        /// Failed calls to the storage.
        public internal(set) var storageFailures = 0
        /// Bytes of content that were not transferred.
        public internal(set) var bytesSaved = 0

        /// The share of requests without an exchange of their own; 0 without requests.
        public var hitRate: Double { requests == 0 ? 0 : Double(hits + stale + collapsed) / Double(requests) }
    }
}
