import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime
import Synchronization

/// The `Cache-Control` values of the API.
enum CachePolicy {
    static let feed: StaticString = "private, max-age=60, stale-while-revalidate=300, stale-if-error=86400"
    static let profile: StaticString = "private, max-age=300"
    static let image: StaticString = "public, max-age=31536000, immutable"
    static let revalidate: StaticString = "private, no-cache"
    static let noStore: StaticString = "no-store"
    static let documentation: StaticString = "public, max-age=300"
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

    /// Whether the value is final; otherwise it changes at the end of the current second.
    var isSettled: Bool { date != nil }
}

/// The current representation of a resource, in JSON or HTML: the replies for 200 and 304 in each content coding, and their
/// validators.
///
/// Immutable; each reply is serialised once, and compressed once for each coding that is asked for.
final class Representation: Sendable {
    let full: Reply
    private let body: [UInt8]
    let entityTag: EntityTag
    let lastModified: WallTime?
    /// Whether the representation may be cached: not while its `Last-Modified` is pending.
    let isReusable: Bool
    private let mediaType: StaticString
    private let cacheControl: StaticString
    private let vary: StaticString
    private let lines: [UInt8]
    private let variants = Mutex(Variants())
    /// The bytes of compressed bodies and their heads.
    private let variantBytes = Atomic(0)

    /// What is made on first use.
    private struct Variants {
        var notModified: [ContentCoding?: Reply] = [:]
        /// nil: the coding makes the body no smaller.
        var coded: [ContentCoding: Reply?] = [:]
    }

    /// Smaller bodies are not compressed: they fit into the packet that carries their head.
    private static let codedBytesMinimum = 1_024

    /// - Parameters:
    ///   - modified: when the resource last changed; nil if that does not identify its state (the removal of a list item does
    ///     not update it).
    ///   - lines: further field lines; the entity tag covers them.
    init(
        body: [UInt8],
        mediaType: StaticString = "application/json",
        cacheControl: StaticString,
        vary: StaticString = "Authorization, Origin",
        modified: Modification? = nil,
        lines: [UInt8] = []
    ) {
        let tagged = lines.isEmpty ? body : body + lines
        entityTag = .strong(contentOf: tagged.span)
        self.lines = lines
        isReusable = modified?.isSettled ?? true
        lastModified = modified?.date
        self.mediaType = mediaType
        self.cacheControl = cacheControl
        self.vary = vary

        self.body = body
        var head = ReplyHead(.ok)
        head.append("Content-Type", mediaType.description)
        head.append("Content-Length", "\(body.count)")
        var caching: [UInt8] = []
        Self.appendCaching(
            cacheControl,
            entityTag,
            lastModified,
            vary,
            isNegotiated: Self.isNegotiated(body),
            to: &caching
        )
        head.append(lines: caching + lines)
        full = Reply(head, body: .bytes(body))
    }

    private static func isNegotiated(_ body: [UInt8]) -> Bool { body.count >= codedBytesMinimum }

    /// Whether the coding of the body depends on the request.
    var isNegotiated: Bool { Self.isNegotiated(body) }

    /// Appends the fields that a 200 and a 304 have in common.
    private static func appendCaching(
        _ cacheControl: StaticString,
        _ entityTag: EntityTag,
        _ lastModified: WallTime?,
        _ vary: StaticString,
        isNegotiated: Bool,
        to head: inout [UInt8]
    ) {
        head.append("Cache-Control: ")
        head.append(cacheControl)
        head.append("\r\nETag: \"")
        head.append(contentsOf: entityTag.opaque.utf8)
        head.append("\"")
        if let lastModified {
            head.append("\r\nLast-Modified: ")
            HTTPDate.appendIMF(lastModified, to: &head)
        }
        head.append("\r\nVary: ")
        head.append(vary)
        if isNegotiated { head.append(", Accept-Encoding") }
        head.append("\r\n")
    }

    /// The 200 in a coding; uncompressed if the body is too small for one, or the coding makes it no smaller.
    func full(_ coding: ContentCoding?) -> Reply {
        guard let coding, isNegotiated else { return full }
        return variants.withLock { variants in
            if let known = variants.coded[coding] { return known ?? full }
            let made = coded(by: coding)
            variants.coded[coding] = .some(made)
            if let made { variantBytes.add(made.head.bytes.count + made.body.count, ordering: .relaxed) }
            return made ?? full
        }
    }

    private func coded(by coding: ContentCoding) -> Reply? {
        guard let coded = coding.encode(body), coded.count < body.count else { return nil }
        var head = ReplyHead(.ok)
        head.append("Content-Type", mediaType.description)
        head.append("Content-Encoding", coding.rawValue)
        head.append("Content-Length", "\(coded.count)")
        let tag = entityTag.coded(by: coding)
        head.append { Self.appendCaching(cacheControl, tag, lastModified, vary, isNegotiated: true, to: &$0) }
        head.append(lines: lines)
        return Reply(head, body: .bytes(coded), bytesSavedByCoding: body.count - coded.count)
    }

    /// The 304 with the tag of a coding: it repeats the caching fields of the 200 and no content fields (RFC 9110 §15.4.5).
    ///
    /// Made on first use, because most representations are discarded before they are revalidated.
    func notModified(_ coding: ContentCoding?) -> Reply {
        variants.withLock { variants in
            if let known = variants.notModified[coding] { return known }
            var head = ReplyHead(.notModified)
            // A coding that makes the content no smaller is not applied: the 200 has the plain tag.
            let isCoded = coding.map { variants.coded[$0].map { $0 != nil } ?? true } ?? false
            let tag = isCoded ? coding.map { entityTag.coded(by: $0) } ?? entityTag : entityTag
            head.append {
                Self.appendCaching(cacheControl, tag, lastModified, vary, isNegotiated: isNegotiated, to: &$0)
            }
            head.append(lines: lines)
            let made = Reply(head, body: .empty)
            variants.notModified[coding] = made
            return made
        }
    }

    /// Whether a field value is exactly this representation's tag, as caches send it.
    func isTagged(_ value: ArraySlice<UInt8>) -> Bool {
        value.count == entityTag.opaque.utf8.count + 2 && value.first == UInt8(ascii: "\"")
            && value.last == UInt8(ascii: "\"") && value.dropFirst().dropLast().elementsEqual(entityTag.opaque.utf8)
    }

    /// The memory cost in bytes. It grows when a compressed reply is made.
    var byteCount: Int {
        full.head.bytes.count * 2 + body.count + 256 + variantBytes.load(ordering: .relaxed)
    }
}
