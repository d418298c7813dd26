/// What a cache has done so far.
public struct HTTPCacheStatistics: Sendable, Hashable {
    /// Requests that the cache was asked.
    public internal(set) var requests = 0
    /// Responses given out as fresh, without the network.
    public internal(set) var hits = 0
    /// Responses given out as stale.
    public internal(set) var stale = 0
    /// Responses that the server confirmed with a 304.
    public internal(set) var revalidations = 0
    /// Responses taken from another request's exchange.
    public internal(set) var collapsed = 0
    /// Exchanges with the server, those in the background among them.
    public internal(set) var exchanges = 0
    /// Responses that were stored.
    public internal(set) var stores = 0
    /// Calls to the storage that failed.
    public internal(set) var storageFailures = 0
    /// Bytes of content that did not have to be sent again.
    public internal(set) var bytesSaved = 0

    /// The share of requests that needed no exchange of their own; 0 when there were none.
    public var hitRate: Double { requests == 0 ? 0 : Double(hits + stale + collapsed) / Double(requests) }
}
