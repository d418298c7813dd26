import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime
import Synchronization

/// How replies of a resource may be cached: the `Cache-Control` that the API promises.
enum CachePolicy {
    static let feed: StaticString = "private, max-age=60, stale-while-revalidate=300, stale-if-error=86400"
    static let profile: StaticString = "private, max-age=300"
    static let image: StaticString = "public, max-age=31536000, immutable"
    static let revalidate: StaticString = "private, no-cache"
    static let noStore: StaticString = "no-store"
    static let documentation: StaticString = "public, max-age=300"
}

/// When a resource last changed, as `Last-Modified` can tell it.
///
/// While the second of a change is not over there is no date for it: a later change in the same second would have the same
/// date, and the date would vouch for bytes that are gone (RFC 9110 §8.8.2.2).
struct Modification {
    let date: WallTime?

    init(at updated: WallTime, now: WallTime) {
        date = now.seconds > updated.seconds ? WallTime(seconds: updated.seconds) : nil
    }

    /// Whether what is said now will still be said in a second.
    var isSettled: Bool { date != nil }
}

/// The current representation of a resource: what a 200 sends, what a 304 sends, and the validators of both.
///
/// Immutable, and serialised once however often it is sent.
final class Representation: Sendable {
    let full: PreparedResponse
    let entityTag: EntityTag
    let lastModified: WallTime?
    let dependencies: Dependencies
    /// Whether it may be served again. Not while it lacks a `Last-Modified` that it will have in a second.
    let isReusable: Bool
    /// Where in the head of the 200 the lines begin that a 304 repeats.
    private let sharedStart: Int
    private let brief = Mutex<PreparedResponse?>(nil)

    /// - Parameters:
    ///   - digest: what changes exactly when the body does, if that is known and shorter: the entity tag is made from it.
    ///   - modified: when the resource last changed, if that says everything (a list from which something was deleted has no
    ///     such time).
    ///   - dependencies: what part of the state a change of which makes this outdated.
    init(
        body: [UInt8],
        digest: [UInt8]? = nil,
        mediaType: StaticString = "application/json",
        cacheControl: StaticString,
        vary: StaticString = "Authorization, Origin",
        modified: Modification? = nil,
        dependencies: Dependencies
    ) {
        entityTag = if let digest { .strong(contentOf: digest.span) } else { .strong(contentOf: body.span) }
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

    /// What a 304 sends: it repeats what a 200 would have said of caching, and nothing of the content (RFC 9110 §15.4.5).
    /// Made when it is first asked for, because most representations are gone before they are asked for again.
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

    /// Whether a field's value is this representation's tag alone, as caches send it.
    func isTagged(_ value: ArraySlice<UInt8>) -> Bool {
        value.count == entityTag.opaque.utf8.count + 2 && value.first == UInt8(ascii: "\"")
            && value.last == UInt8(ascii: "\"") && value.dropFirst().dropLast().elementsEqual(entityTag.opaque.utf8)
    }

    /// What keeping this costs, in bytes.
    var byteCount: Int { full.head.count * 2 + full.body.count + 256 }
}
