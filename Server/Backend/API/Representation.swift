import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime

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
    let notModified: PreparedResponse
    let entityTag: EntityTag
    let lastModified: WallTime?
    let dependencies: Dependencies
    /// Whether it may be served again. Not while it lacks a `Last-Modified` that it will have in a second.
    let isReusable: Bool

    /// - Parameters:
    ///   - modified: when the resource last changed, if that says everything (a list from which something was deleted has no
    ///     such time).
    ///   - dependencies: what part of the state a change of which makes this outdated.
    init(
        body: [UInt8],
        mediaType: StaticString = "application/json",
        cacheControl: StaticString,
        vary: StaticString = "Authorization, Origin",
        modified: Modification? = nil,
        dependencies: Dependencies
    ) {
        let tag = EntityTag.strong(contentOf: body.span)
        isReusable = modified?.isSettled ?? true
        let lastModified = modified?.date
        self.entityTag = tag
        self.lastModified = lastModified
        self.dependencies = dependencies
        var shared: [UInt8] = []
        shared.reserveCapacity(256)
        shared.append("Cache-Control: ")
        shared.append(cacheControl)
        shared.append("\r\nETag: ")
        shared.append(contentsOf: tag.description.utf8)
        if let lastModified {
            shared.append("\r\nLast-Modified: ")
            HTTPDate.appendIMF(lastModified, to: &shared)
        }
        shared.append("\r\nVary: ")
        shared.append(vary)
        shared.append("\r\n")

        var head: [UInt8] = []
        head.reserveCapacity(shared.count + 96)
        head.append("HTTP/1.1 200 OK\r\nContent-Type: ")
        head.append(mediaType)
        head.append("\r\nContent-Length: ")
        head.append(decimal: Int64(body.count))
        head.append("\r\n")
        head.append(contentsOf: shared)
        full = PreparedResponse(status: .ok, head: head, body: body)

        // RFC 9110 §15.4.5: a 304 repeats what a 200 would have said of caching, and nothing of the content.
        var brief: [UInt8] = []
        brief.reserveCapacity(shared.count + 32)
        brief.append("HTTP/1.1 304 Not Modified\r\n")
        brief.append(contentsOf: shared)
        notModified = PreparedResponse(status: .notModified, head: brief, body: [])
    }

    /// What keeping this costs, in bytes.
    var byteCount: Int { full.head.count + full.body.count + notModified.head.count + 256 }
}
