import LarderHTTP
import LarderTime

/// The part of a file that arrived before a download was interrupted.
struct PartialImage: Sendable {
    var bytes: [UInt8] = []
    var entityTag: EntityTag?
    /// The length of the whole file; nil if the server has not stated it.
    var length: Int?
    /// The fields of the first response, updated by those of later ranges (RFC 9110 §15.3.7.3, RFC 9111 §3.4).
    var fields = Fields()
    /// The time of the last request.
    var requestedAt = WallTime(seconds: 0)
    /// The time of the last response.
    var receivedAt = WallTime(seconds: 0)
    /// The number of bytes that are on disk.
    var keptCount = 0

    init() {}

    /// The part at the start of a complete (200) response.
    init(beginning fields: Fields, requestedAt: WallTime, receivedAt: WallTime) {
        self.fields = fields
        self.requestedAt = requestedAt
        self.receivedAt = receivedAt
        // With a content coding, neither the length nor a range counts the bytes that are received here.
        if let encoding = fields[.contentEncoding], encoding.lowercased() != "identity" { return }
        length = fields[.contentLength].flatMap { Int($0) }
        entityTag = fields[.etag].flatMap { EntityTag(parsing: $0) }
    }

    /// Whether the rest can be requested: only a strong tag guarantees that the parts are of one file (RFC 9110 §13.1.5).
    var isResumable: Bool { !bytes.isEmpty && entityTag.map { !$0.isWeak } == true }

    /// Whether a partial response (RFC 9110 §15.3.7) continues exactly where the part ends, in the same file.
    func isContinued(by fields: Fields) throws(ImageError) -> Bool {
        guard isResumable else { throw ImageError(.invalid, "The server sent a range that was not requested.") }
        if let tag = fields[.etag].flatMap({ EntityTag(parsing: $0) }), let known = entityTag,
            !tag.stronglyMatches(known)
        {
            return false
        }
        guard let range = Self.contentRange(fields), range.bytes.lowerBound == bytes.count else { return false }
        return range.total == nil || length == nil || range.total == length
    }

    private static func contentRange(_ fields: Fields) -> ContentRange? {
        fields[.contentRange].flatMap { ContentRange(parsing: $0) }
    }

    private static let ofParts: Set<String> = [
        "content-length", "content-range", "content-encoding", "content-digest",
    ]

    /// Takes over the fields of the newer, partial response.
    mutating func renew(by news: Fields, requestedAt: WallTime, receivedAt: WallTime) {
        self.requestedAt = requestedAt
        self.receivedAt = receivedAt
        // The first response may have stated no length.
        length = length ?? Self.contentRange(news)?.total
        fields.remove(.age)
        var isReplaced: Set<FieldName> = []
        // Fields that describe only the range keep the values of the whole.
        for field in news where !Self.ofParts.contains(field.name.canonical) {
            if isReplaced.insert(field.name).inserted { fields.remove(field.name) }
            fields.add(field.name, field.value)
        }
    }
}
