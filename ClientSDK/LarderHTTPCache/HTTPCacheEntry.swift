import LarderCoding
package import LarderHTTP
package import LarderTime

/// A stored response without its content.
package struct HTTPCacheEntry: Sendable, Hashable {
    /// A request field that selects the response (`Vary`), with its value.
    package struct Selector: Sendable, Hashable {
        package let name: FieldName
        /// The normalised value, or a digest if it is secret or long; nil if the request had no such field.
        package let value: String?
    }

    /// Identifies the content. Entries of one URL with the same content share it.
    package let bodyID: String
    /// The size of the stored content, in bytes.
    package let bodyCount: Int
    package internal(set) var status: Status
    /// The fields without those of the connection.
    package var fields: Fields
    /// The request fields that select this response (RFC 9111 §4.1).
    package internal(set) var selectors: [Selector]
    /// When the request was sent that stored or last validated it.
    package internal(set) var requestedAt: WallTime
    /// When the response to that request was received.
    package internal(set) var receivedAt: WallTime
    /// When the content was received.
    package internal(set) var fetchedAt: WallTime
    /// Whether it must be validated before its next use (RFC 9111 §4.4).
    package internal(set) var isInvalidated: Bool

    package init(
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

    /// Returns a hash of the content.
    static func bodyID(for body: [UInt8]) -> String {
        let (high, low) = ContentHash.hash128(body.span)
        return String(high, radix: 16) + "-" + String(low, radix: 16) + "-" + String(body.count, radix: 16)
    }

    /// The `Date` of the response; storing adds a missing one (RFC 9110 §6.6.1).
    var date: WallTime { fields[.date].flatMap { HTTPDate.parse($0, now: receivedAt) } ?? receivedAt }

    /// Whether another entry for the same requests is from a later exchange, so that a slow older response does not
    /// replace it. An entry from the future is ignored, because the clock was set back since, and so is a part of the same response.
    package func isOutdated(by other: HTTPCacheEntry, now: WallTime) -> Bool {
        !other.isPart && other.selectors == selectors && other.requestedAt > requestedAt && other.requestedAt <= now
            && other.date >= date
    }

    /// Whether the response suits the selecting fields of a request (RFC 9111 §4.1).
    func matches(_ selecting: Fields) -> Bool {
        selectors.allSatisfy { selector in
            if selector.matches(selecting) { return true }
            // Another spelling of a wish for the language that this one has.
            guard selector.name == .acceptLanguage, let language = fields[.contentLanguage] else { return false }
            return Negotiation.prefers(language, in: selecting)
        }
    }

    /// The entity tag, if it is valid.
    package var entityTag: EntityTag? { fields[.etag].flatMap { EntityTag(parsing: $0) } }

    /// The `Last-Modified` date, if it is valid.
    var lastModified: WallTime? { fields[.lastModified].flatMap { HTTPDate.parse($0, now: receivedAt) } }

    /// Whether it can be validated.
    var hasValidator: Bool { entityTag != nil || lastModified != nil }
}

extension HTTPCacheEntry.Selector {
    /// Returns the selectors of a request for the fields of a `Vary`. Values that may be secret are hashed.
    static func selectors(_ names: [FieldName], in request: Fields) -> [HTTPCacheEntry.Selector] {
        names.map { name in HTTPCacheEntry.Selector(name: name, value: value(of: name, in: request)) }
    }

    /// Whether a request has the selector's value.
    func matches(_ request: Fields) -> Bool { Self.value(of: name, in: request) == value }

    private static func value(of name: FieldName, in request: Fields) -> String? {
        guard let value = Vary.normalized(name, in: request) else { return nil }
        // The storage must not reveal tokens, which may be in any field of the app's.
        if !preferences.contains(name.canonical) { return "sha256:" + hexEncode(SHA256.hash(Array(value.utf8))) }
        guard value.utf8.count > 256 else { return value }
        return "digest:" + HTTPCacheEntry.bodyID(for: Array(value.utf8))
    }

    private static let preferences: Set<String> = [
        "accept", "accept-charset", "accept-encoding", "accept-language", "prefer",
    ]
}
