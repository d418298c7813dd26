import LarderBackend
import LarderCoding
import LarderEngine
import LarderHTTP
import Synchronization

/// Answers requests with the replies of an HTTP archive, without the server that gave them: a recording, or what a browser has saved.
///
/// A request is recognised by its method, its target without the part that names a world, and its body. Equal requests get their replies
/// in the recorded order, also if they are for different worlds; the last one is repeated. Safe from any thread.
final class RecordedReplies: Sendable {
    private struct Key: Hashable {
        let method: Method
        let target: String
        let body: [UInt8]

        /// - Parameter request: without the part of its path that names the world.
        init(_ request: Request) {
            let target = request.targetText
            method = request.method
            // A path that names only a world is empty.
            self.target = target.hasPrefix("/") || target == "*" ? target : "/" + target
            body = request.body
        }
    }

    private struct Recorded {
        let head: ResponseHead
        let body: [UInt8]
        /// That of the recorded request: the proxy's, which URLs in the reply name.
        let url: HTTPURL
        /// The part of the recorded path that names the world, which paths in the reply begin with; empty for none.
        let worldPath: String
    }

    private struct State {
        var replies: [Key: [Recorded]] = [:]
        /// How many replies of each key were sent.
        var counts: [Key: Int] = [:]
    }

    private let state: Mutex<State>

    /// - Parameters:
    ///   - archive: HAR 1.2. Entries without a complete reply are left out.
    ///   - readsWorldPaths: whether a path below `/w/` names a world.
    /// - Throws: `FileError` or `JSONError` if it is no archive.
    init(_ archive: [UInt8], readsWorldPaths: Bool) throws {
        guard let entries = try JSONParser.parse(archive).value(at: "/log/entries")?.array else {
            throw FileError(
                "The file of --play is no HTTP archive (`log.entries`): larder-server recording start, then save FILE, makes one"
            )
        }
        var state = State()
        for entry in entries {
            guard let url = entry.value(at: "/request/url")?.string.flatMap({ HTTPURL($0) }),
                let request = Self.request(entry["request"], to: url),
                let head = Self.head(entry["response"], to: request)
            else { continue }
            let inner = request.droppingPathPrefix(
                WorldPath(request, readsPrefix: readsWorldPaths)?.prefixLength ?? 0
            )
            let worldPath = String(decoding: inner.droppedPrefix, as: UTF8.self)
            let body = HAR.bytes(of: entry.value(at: "/response/content"))
            state.replies[Key(inner), default: []].append(
                Recorded(head: head, body: body, url: url, worldPath: worldPath)
            )
        }
        self.state = Mutex(state)
    }

    func reply(to request: Request) -> Reply {
        let key = Key(request)
        let recorded = state.withLock { state -> Recorded? in
            guard let replies = state.replies[key] else { return nil }
            let count = state.counts[key, default: 0]
            state.counts[key] = count + 1
            return replies[min(count, replies.count - 1)]
        }
        guard let recorded else {
            return ProblemType.notFound(
                "The recording has no reply to \(request.method) \(request.targetText.prefix(200)) with this body."
            ).reply
        }
        let location = ProxyLocation(
            authority: recorded.url.authority,
            isSecure: recorded.url.scheme.isSecure,
            basePath: recorded.worldPath,
            for: request
        )
        return ProxyRelay.reply(recorded.head, recorded.body, to: request, location)
    }

    /// Nil for what is no request of HTTP/1.
    private static func request(_ json: JSONValue?, to url: HTTPURL) -> Request? {
        let method = Method(json?["method"]?.string ?? "")
        return try? Request(method, url.target, [("Host", url.authority)], body: HAR.bytes(of: json?["postData"]))
    }

    /// The head of a reply whose content is not coded any more; nil if there is none.
    private static func head(_ json: JSONValue?, to request: Request) -> ResponseHead? {
        guard let code = json?["status"]?.integer, (200...599).contains(code) else { return nil }
        var text = "HTTP/1.1 \(code) \(Status(code: Int(code)).reasonPhrase)\r\n"
        // The length of what a GET would have returned (RFC 9110 §8.6).
        var omitted =
            request.method == .head || code == 304 ? ["transfer-encoding"] : ["transfer-encoding", "content-length"]
        if json?.value(at: "/content/_isCoded") == nil { omitted.append("content-encoding") }
        for field in json?["headers"]?.array ?? [] {
            // The names of HTTP/2 that begin with a colon are no fields.
            guard let name = field["name"]?.string, FieldName(name) != nil, !omitted.contains(name.lowercased()) else {
                continue
            }
            text += "\(name): \(field["value"]?.string ?? "")\r\n"
        }
        var reader = ResponseReader(isHead: request.method == .head)
        var events: [ResponseReader.Event] = []
        let bytes = Array((text + "\r\n").utf8)
        // A field with a line break, for example, is no head.
        guard (try? reader.receive(bytes.span, &events)) != nil,
            case .head(let head)? = events.first
        else { return nil }
        return head
    }
}
