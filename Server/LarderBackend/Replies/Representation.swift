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

/// The current representation of a resource: the replies for 200 and 304 and their validators.
///
/// Immutable; each reply is serialised once.
final class Representation: Sendable {
    let full: PreparedResponse
    let entityTag: EntityTag
    let lastModified: WallTime?
    let dependencies: Dependencies
    /// Whether the representation may be cached: not while its `Last-Modified` is pending.
    let isReusable: Bool
    /// The offset in the 200's head of the lines that a 304 repeats.
    private let sharedStart: Int
    private let brief = Mutex<PreparedResponse?>(nil)

    /// - Parameters:
    ///   - modified: when the resource last changed; nil if that does not identify its state (the removal of a list item does
    ///     not update it).
    ///   - dependencies: the parts of the state that invalidate this representation when they change.
    init(
        body: [UInt8],
        mediaType: StaticString = "application/json",
        cacheControl: StaticString,
        vary: StaticString = "Authorization, Origin",
        modified: Modification? = nil,
        dependencies: Dependencies
    ) {
        entityTag = .strong(contentOf: body.span)
        isReusable = modified?.isSettled ?? true
        lastModified = modified?.date
        self.dependencies = dependencies

        var head: [UInt8] = []
        head.reserveCapacity(352)
        head.append("HTTP/1.1 200 OK\r\nContent-Type: ")
        head.append(mediaType)
        head.append("\r\nContent-Length: ")
        head.append(decimal: Int64(body.count))
        head.append("\r\n")
        sharedStart = head.count
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
        head.append("\r\n")
        full = PreparedResponse(status: .ok, head: head, body: body)
    }

    /// The 304: it repeats the caching fields of the 200 and no content fields (RFC 9110 §15.4.5). Made on first use, because
    /// most representations are discarded before they are revalidated.
    var notModified: PreparedResponse {
        brief.withLock { brief in
            if let brief { return brief }
            var head: [UInt8] = []
            head.reserveCapacity(full.head.count)
            head.append("HTTP/1.1 304 Not Modified\r\n")
            head.append(contentsOf: full.head[sharedStart...])
            let made = PreparedResponse(status: .notModified, head: head, body: [])
            brief = made
            return made
        }
    }

    /// Whether a field value is exactly this representation's tag, as caches send it.
    func isTagged(_ value: ArraySlice<UInt8>) -> Bool {
        value.count == entityTag.opaque.utf8.count + 2 && value.first == UInt8(ascii: "\"")
            && value.last == UInt8(ascii: "\"") && value.dropFirst().dropLast().elementsEqual(entityTag.opaque.utf8)
    }

    /// The memory cost in bytes.
    var byteCount: Int { full.head.count * 2 + full.body.count + 256 }
}
