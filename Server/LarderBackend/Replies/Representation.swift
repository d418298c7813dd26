import LarderCoding
package import LarderEngine
package import LarderHTTP
import LarderTime
import Synchronization

/// The `Cache-Control` values of the API.
enum CachePolicy {
    static let feed = "private, max-age=60, stale-while-revalidate=300, stale-if-error=86400"
    static let profile = "private, max-age=300"
    static let image = "public, max-age=31536000, immutable"
    static let revalidate = "private, no-cache"
    static let documentation = "public, max-age=300"
}

/// When a resource last changed, in the resolution of `Last-Modified`.
///
/// There is no date until the second of the change has ended: a later change in the same second would get the same date, and
/// the validator would match outdated bytes (RFC 9110 §8.8.2.2).
struct Modification {
    let date: WallTime?

    init(at updated: WallTime, now: WallTime) {
        date = now.seconds > updated.seconds ? WallTime(seconds: updated.seconds) : nil
    }
}

/// The current representation of a resource: its content, its fields and its validators. Each read of it is answered by `reply(to:now:)`.
///
/// Immutable; each form of it is made once, when it is asked for.
final class Representation: Sendable {
    /// The 200 with the whole content, without a coding.
    let full: Reply
    let entityTag: EntityTag
    let lastModified: WallTime?
    /// Whether the representation may be cached: not while its `Last-Modified` is pending.
    let isReusable: Bool
    /// Whether the coding of the content depends on the request.
    let isNegotiated: Bool
    /// Those of the 200 without `ETag`.
    private let fields: Fields
    private let takesRanges: Bool
    /// The forms that were asked for.
    private let forms = Mutex(Forms())

    private struct Forms {
        /// The 200 in a coding; nil: it makes the content no smaller.
        var coded: [ContentCoding: Reply?] = [:]
        /// The 304 with the tag of a coding.
        var unchanged: [ContentCoding?: Reply] = [:]
    }

    /// Smaller content is not compressed: it fits into the packet that carries its head.
    private static let codedBytesMinimum = 1_024

    /// - Parameters:
    ///   - fields: those of the 200, without `ETag` and `Last-Modified`.
    ///   - modified: when the resource last changed; nil if that does not identify its state (the removal of a list item does
    ///     not update it).
    ///   - isText: whether the content may be compressed.
    ///   - takesRanges: whether a part of the content can be read (RFC 9110 §14).
    init(
        _ content: [UInt8],
        _ fields: Fields,
        _ entityTag: EntityTag,
        modified: Modification? = nil,
        isText: Bool,
        takesRanges: Bool = true
    ) {
        self.entityTag = entityTag
        self.takesRanges = takesRanges
        isNegotiated = isText && content.count >= Self.codedBytesMinimum
        lastModified = modified?.date
        isReusable = modified.map { $0.date != nil } ?? true
        var fields = fields
        if let lastModified { fields.set(.lastModified, HTTPDate.format(lastModified)) }
        if takesRanges { fields.set(.acceptRanges, "bytes") }
        if isNegotiated {
            fields.set(.vary, (fields.values(of: .vary) + ["Accept-Encoding"]).joined(separator: ", "))
        }
        self.fields = fields
        fields.set(.etag, entityTag.description)
        full = Reply(status: .ok, fields: fields, body: .bytes(content))
    }

    /// A text in memory, JSON unless stated otherwise, which is always read as a whole.
    ///
    /// - Parameter lines: further fields; the entity tag covers them.
    convenience init(
        body: [UInt8],
        mediaType: String = "application/json",
        cacheControl: String,
        vary: String = "Authorization, Origin",
        modified: Modification? = nil,
        lines: Fields = [:]
    ) {
        var fields: Fields = [.contentType: mediaType, .cacheControl: cacheControl, .vary: vary]
        var tagged = body
        for line in lines {
            fields.add(line.name, line.value)
            tagged += Array(line.value.utf8)
        }
        let tag = EntityTag.strong(contentOf: tagged.span)
        self.init(body, fields, tag, modified: modified, isText: true, takesRanges: false)
    }

    /// The reply that the request's conditions, range and accepted codings require: 200, 206, 304, 412 or 416 (RFC 9110 §13, §14).
    func reply(to request: Request, now: WallTime) -> Reply {
        let coding = isNegotiated ? Negotiation.coding(request) : nil
        let conditions = Preconditions(request)
        func outcome(_ codings: [ContentCoding]) -> PreconditionOutcome {
            conditions.evaluate(
                method: request.method,
                exists: true,
                entityTag: entityTag,
                codings: codings,
                lastModified: lastModified,
                now: now
            )
        }
        switch outcome(coding.map { [$0] } ?? []) {
        case .proceed: return part(request, now) ?? coding.flatMap { coded(by: $0) } ?? full
        case .notModified:
            guard let coding else { return unchanged(nil) }
            // The 304 has the tag that matched, so that the client's cache finds what it confirms. Without a tag in the condition it
            // has the tag that the 200 would have.
            let hasTag = request.fields.combined(.ifNoneMatch).map { $0.contains("\"") } ?? false
            return unchanged(hasTag && outcome([]) == .notModified ? nil : coding)
        case .preconditionFailed:
            return ProblemType.preconditionFailed(
                "The condition does not hold for the current representation.",
                fields: [.etag: entityTag.description]
            ).reply
        }
    }

    /// The fields with the tag of a coding: its bytes differ (RFC 9110 §8.8.3.3).
    private func fields(_ coding: ContentCoding?) -> Fields {
        var fields = fields
        fields.set(.etag, (coding.map { entityTag.coded(by: $0) } ?? entityTag).description)
        return fields
    }

    /// The 200 with the content in a coding; nil if that makes it no smaller.
    private func coded(by coding: ContentCoding) -> Reply? {
        forms.withLock { forms in
            if let known = forms.coded[coding] { return known }
            var made: Reply?
            if let content = coding.encode(full.bytes), content.count < full.body.count {
                var fields = fields(coding)
                fields.set(.contentEncoding, coding.rawValue)
                made = Reply(status: .ok, fields: fields, body: .bytes(content))
                made?.bytesSavedByCoding = full.body.count - content.count
            }
            forms.coded[coding] = .some(made)
            return made
        }
    }

    private func unchanged(_ coding: ContentCoding?) -> Reply {
        let coding = coding.flatMap { coded(by: $0) == nil ? nil : $0 }
        return forms.withLock { forms in
            if let known = forms.unchanged[coding] { return known }
            var fields = fields(coding)
            // It repeats the caching fields of the 200 and no content fields (RFC 9110 §15.4.5).
            fields.remove(.contentType)
            let made = Reply(status: .notModified, fields: fields)
            forms.unchanged[coding] = made
            return made
        }
    }

    /// The 206 or 416 for a request with exactly one range. Several ranges, or a failed `If-Range`, are answered with the whole content, as
    /// RFC 9110 §14.2 allows.
    private func part(_ request: Request, _ now: WallTime) -> Reply? {
        guard takesRanges, request.method == .get, let field = request.fields[.range],
            let ranges = ByteRange.parse(field), ranges.count == 1
        else { return nil }
        if let condition = request.fields[.ifRange],
            !Preconditions.ifRangeHolds(condition, entityTag: entityTag, lastModified: nil, date: now)
        {
            return nil
        }
        guard let range = ranges[0].resolved(against: full.body.count) else {
            return ProblemType.rangeNotSatisfiable(
                "The range contains none of the \(full.body.count) bytes.",
                fields: [.contentRange: "bytes */\(full.body.count)", .acceptRanges: "bytes"]
            ).reply
        }
        var fields = fields(nil)
        fields.set(.contentRange, "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(full.body.count)")
        return Reply(status: .partialContent, fields: fields, body: .bytes(Array(full.bytes[range])))
    }

    /// The most bytes of memory that it takes: with the content in each coding, which is smaller.
    var byteCount: Int {
        full.head.bytes.count * 6 + full.body.count * (isNegotiated ? 1 + ContentCoding.allCases.count : 1)
    }
}

extension Preconditions {
    /// The conditions in the header fields of a request.
    package init(_ request: borrowing Request) {
        self.init(
            ifMatch: request.fields.combined(.ifMatch),
            ifNoneMatch: request.fields.combined(.ifNoneMatch),
            ifModifiedSince: request.fields[.ifModifiedSince],
            ifUnmodifiedSince: request.fields[.ifUnmodifiedSince]
        )
    }
}
