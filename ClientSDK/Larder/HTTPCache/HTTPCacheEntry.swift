import LarderCoding
public import LarderHTTP
public import LarderTime

/// A stored response without its content: what decisions are made from.
public struct HTTPCacheEntry: Sendable, Hashable {
    /// A field of the request that chose the response, and the value that it had.
    public struct Selector: Sendable, Hashable {
        /// The field.
        public let name: FieldName
        /// Its normalised value, or a digest of one that is secret or long; nil where the request did not have the field.
        public let value: String?
    }

    /// Names the content. Entries of one URL that have the same content may share it.
    public let bodyID: String
    /// How many bytes the content has.
    public let bodyCount: Int
    /// The status.
    public internal(set) var status: Status
    /// The fields, without those that belong to a connection.
    public internal(set) var fields: Fields
    /// What a request must have for this response to suit it (RFC 9111 §4.1).
    public internal(set) var selectors: [Selector]
    /// When the request left whose response is stored, or that last validated it.
    public internal(set) var requestedAt: WallTime
    /// When that response came.
    public internal(set) var receivedAt: WallTime
    /// When the content came.
    public internal(set) var fetchedAt: WallTime
    /// Whether it must be validated before it is used again, whatever else holds (RFC 9111 §4.4).
    public internal(set) var isInvalidated: Bool

    init(
        bodyID: String,
        bodyCount: Int,
        status: Status,
        fields: Fields,
        selectors: [Selector],
        requestedAt: WallTime,
        receivedAt: WallTime,
        fetchedAt: WallTime? = nil,
        isInvalidated: Bool = false
    ) {
        self.bodyID = bodyID
        self.bodyCount = bodyCount
        self.status = status
        self.fields = fields
        self.selectors = selectors
        self.requestedAt = requestedAt
        self.receivedAt = receivedAt
        self.fetchedAt = fetchedAt ?? receivedAt
        self.isInvalidated = isInvalidated
    }

    /// A name for content: the same for the same bytes.
    static func bodyID(for body: [UInt8]) -> String {
        let (high, low) = ContentHash.hash128(body.span)
        return String(high, radix: 16) + "-" + String(low, radix: 16) + "-" + String(body.count, radix: 16)
    }

    /// The response's `Date`; storing adds one where there is none (RFC 9110 §6.6.1).
    var date: WallTime { fields[.date].flatMap { HTTPDate.parse($0, now: receivedAt) } ?? receivedAt }

    /// Whether another entry for the same requests is of a later exchange: a slow old reply never takes the place of a newer
    /// one. What seems to come from the future says nothing, as the clock has gone back since.
    func isOutdated(by other: HTTPCacheEntry, now: WallTime) -> Bool {
        other.selectors == selectors && other.requestedAt > requestedAt && other.requestedAt <= now
            && other.date >= date
    }

    /// The validator that says whether the content is the same.
    var entityTag: EntityTag? { fields[.etag].flatMap { EntityTag(parsing: $0) } }

    /// When the content last changed, if the server said so.
    var lastModified: WallTime? { fields[.lastModified].flatMap { HTTPDate.parse($0, now: receivedAt) } }

    /// Whether there is anything to validate it with.
    var hasValidator: Bool { entityTag != nil || lastModified != nil }
}

extension HTTPCacheEntry.Selector {
    /// What a request has in the fields of a `Vary`, in a form that tells no secret.
    static func selectors(_ names: [FieldName], in request: Fields) -> [HTTPCacheEntry.Selector] {
        names.map { name in HTTPCacheEntry.Selector(name: name, value: value(of: name, in: request)) }
    }

    /// Whether a request has what these selectors ask for.
    func matches(_ request: Fields) -> Bool { Self.value(of: name, in: request) == value }

    /// Whether the field says who asks.
    var isIdentity: Bool { Self.identities.contains(name.canonical) }

    private static func value(of name: FieldName, in request: Fields) -> String? {
        guard let value = Vary.normalized(name, in: request) else { return nil }
        // Whoever gets hold of the storage must not learn tokens from it.
        if identities.contains(name.canonical) { return "sha256:" + hexEncode(SHA256.hash(Array(value.utf8))) }
        guard value.utf8.count > 256 else { return value }
        return "digest:" + HTTPCacheEntry.bodyID(for: Array(value.utf8))
    }

    static let identities: Set<String> = ["authorization", "cookie", "proxy-authorization"]
}
