extension HTTPCache {
    /// Counters of a cache.
    package struct Statistics: Sendable, Hashable {
        /// Requests to the cache. Each redirect that is followed is another one.
        package internal(set) var requests = 0
        /// Fresh responses served without the network.
        package internal(set) var hits = 0
        /// Stale responses served.
        package internal(set) var stale = 0
        /// Responses confirmed with a 304.
        package internal(set) var revalidations = 0
        /// Responses of shared exchanges.
        package internal(set) var collapsed = 0
        /// Exchanges with the server, including background validations.
        package internal(set) var exchanges = 0
        /// Stored responses.
        package internal(set) var stores = 0
        /// Failed calls to the storage.
        package internal(set) var storageFailures = 0
        /// Bytes of content that were not transferred.
        package internal(set) var bytesSaved = 0

        /// The share of requests without an exchange of their own; 0 without requests.
        package var hitRate: Double { requests == 0 ? 0 : Double(hits + stale + collapsed) / Double(requests) }
    }
}
