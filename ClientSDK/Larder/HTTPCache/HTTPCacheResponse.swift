public import LarderHTTP
public import LarderTime

/// A response with where it came from and why.
public struct HTTPCacheResponse: Sendable, Hashable {
    /// Where a response came from.
    public enum Source: Sendable, Hashable {
        /// The server.
        case network
        /// What is stored, and fresh.
        case hit
        /// What is stored, and the server said just now that it is current.
        case revalidated
        /// What is stored, and stale.
        case stale(HTTPCacheStaleReason)
        /// The server, by the exchange of another request for the same.
        case collapsed
        /// Nowhere: the request was not to be sent, and nothing that is stored suits it.
        case cacheOnlyMiss
    }

    /// The times of what is stored.
    public struct Times: Sendable, Hashable {
        /// When the content came from the server.
        public let fetchedAt: WallTime
        /// When the server last said that it is current.
        public let validatedAt: WallTime
        /// How old it is; nil where the clock has gone back behind it.
        public let age: Duration?
        /// For how long it is fresh, counted from when it was made.
        public let lifetime: Duration

        init(_ entry: HTTPCacheEntry, now: WallTime, policy: HTTPCachePolicy) {
            let freshness = HTTPCacheFreshness(entry, now: now, policy: policy)
            fetchedAt = entry.fetchedAt
            validatedAt = entry.receivedAt
            age = freshness.age
            lifetime = freshness.lifetime
        }
    }

    /// The status.
    public var status: Status
    /// The fields in order, repeats kept. Responses from the cache have an `Age`.
    public var fields: Fields
    /// The whole content.
    public var body: [UInt8]
    /// Where it came from.
    public var source: Source
    /// Why it came from there, in a sentence or two with the figures and the sections of the RFC.
    public var explanation: String
    /// The times of what is stored; nil for what is not.
    public var times: Times?

    /// The response without how it came.
    public var transportResponse: TransportResponse { TransportResponse(status: status, fields: fields, body: body) }
}
