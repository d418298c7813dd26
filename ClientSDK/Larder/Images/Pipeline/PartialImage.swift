import LarderHTTP
import LarderTime

/// A part of a file that arrived before the download broke off, which the server will go on from.
struct PartialImage: Sendable {
    var bytes: [UInt8] = []
    var entityTag: EntityTag?
    /// The length of the whole, where the server has said it.
    var length: Int?
    /// The fields of the reply that began it, renewed by those that went on (RFC 9110 §15.3.7.3, RFC 9111 §3.4).
    var fields = Fields()
    /// When the last request for it left.
    var requestedAt = WallTime(seconds: 0)
    /// When the reply to that came.
    var receivedAt = WallTime(seconds: 0)
    /// How many of the bytes are on disk.
    var keptCount = 0

    init() {}

    /// What a whole reply begins.
    init(beginning fields: Fields, requestedAt: WallTime, receivedAt: WallTime) {
        self.fields = fields
        self.requestedAt = requestedAt
        self.receivedAt = receivedAt
        // Of a reply that is encoded neither the length nor a range is about the bytes that we get.
        if let encoding = fields[.contentEncoding], encoding.lowercased() != "identity" { return }
        length = fields[.contentLength].flatMap { Int($0) }
        entityTag = fields[.etag].flatMap { EntityTag(parsing: $0) }
    }

    /// Whether the rest can be asked for: only a strong tag promises that the parts are of one file (RFC 9110 §13.1.5).
    var isResumable: Bool { !bytes.isEmpty && entityTag.map { !$0.isWeak } == true }

    /// Whether a partial reply (RFC 9110 §15.3.7) goes on just where the part ends, in the same file.
    func isContinued(by fields: Fields) throws(ImageError) -> Bool {
        guard isResumable else { throw ImageError(.invalid, "A part was sent that nobody asked for.") }
        if let tag = fields[.etag].flatMap({ EntityTag(parsing: $0) }), let known = entityTag,
            !tag.stronglyMatches(known)
        {
            return false
        }
        guard let range = Self.contentRange(fields), range.first == bytes.count else { return false }
        return range.length == nil || length == nil || range.length == length
    }

    /// What a part says of its place in the whole: `bytes 100-199/200`; nil where that cannot be. No length where it is not known.
    private static func contentRange(_ fields: Fields) -> (first: Int, length: Int?)? {
        let text = fields[.contentRange] ?? ""
        guard text.lowercased().hasPrefix("bytes ") else { return nil }
        let parts = text.dropFirst(6).split(separator: "/")
        let ends = (parts.first ?? "").split(separator: "-")
        guard parts.count == 2, ends.count == 2, let first = Int(ends[0]) else { return nil }
        if parts[1] == "*" { return (first, nil) }
        guard let length = Int(parts[1]), let last = Int(ends[1]), last < length else { return nil }
        return (first, length)
    }

    private static let ofParts: Set<String> = [
        "content-length", "content-range", "content-encoding", "content-digest",
    ]

    /// Takes over what the reply that goes on says: it is the newer one.
    mutating func renew(by news: Fields, requestedAt: WallTime, receivedAt: WallTime) {
        self.requestedAt = requestedAt
        self.receivedAt = receivedAt
        // Where the beginning came without one, only this tells whether the end has come.
        length = length ?? Self.contentRange(news)?.length
        fields.remove(.age)
        var isReplaced: Set<FieldName> = []
        // Those that are about the part that came stay as the whole had them.
        for field in news where !Self.ofParts.contains(field.name.canonical) {
            if isReplaced.insert(field.name).inserted { fields.remove(field.name) }
            fields.add(field.name, field.value)
        }
    }
}
