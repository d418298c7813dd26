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
        /// Nil: the archive lacks it.
        let body: [UInt8]?
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
    ///   - archive: HAR 1.2. Entries without a reply, and those of other schemes than HTTP, are left out.
    ///   - readsWorldPaths: whether a path below `/w/` names a world.
    /// - Throws: `FileError` or `JSONError` if it is no archive, with the place of an entry that cannot be played.
    init(_ archive: [UInt8], readsWorldPaths: Bool) throws {
        guard let entries = try JSONParser.parse(archive).value(at: "/log/entries")?.array else {
            throw FileError(
                "The file of --play is no HTTP archive (`log.entries`): larder-server recording start, then save FILE, makes one"
            )
        }
        var state = State()
        for (index, entry) in entries.enumerated() {
            do throws(FileError) {
                guard let (request, recorded) = try Self.read(entry, readsWorldPaths) else { continue }
                state.replies[Key(request), default: []].append(recorded)
            } catch {
                throw FileError(
                    "The archive of --play has an entry that cannot be played: /log/entries/\(index): \(error)"
                )
            }
        }
        self.state = Mutex(state)
    }

    /// An entry; nil if there is nothing to play. The request is without the part of its path that names the world.
    private static func read(
        _ entry: JSONValue,
        _ readsWorldPaths: Bool
    ) throws(FileError) -> (request: Request, recorded: Recorded)? {
        let text = entry.value(at: "/request/url")?.string ?? ""
        guard text.lowercased().hasPrefix("http") else { return nil }
        guard let url = HTTPURL(text) else { throw FileError("`request.url` is no URL") }
        let (sent, answered) = (entry["request"], entry["response"])
        guard let code = answered?["status"]?.integer else { throw FileError("`response.status` is no number") }
        // 0: there was no reply.
        guard (200...599).contains(code) else { return nil }
        let method = Method(sent?["method"]?.string ?? "")
        let request: Request
        let body = try HAR.bytes(of: sent?["postData"]) ?? []
        do { request = try Request(method, url.target, [("Host", url.authority)], body: body) } catch {
            throw FileError("`request` is none of HTTP/1: \(error)")
        }
        let head = try head(answered, Int(code), to: request)
        let inner = request.droppingPathPrefix(WorldPath(request, readsPrefix: readsWorldPaths)?.prefixLength ?? 0)
        let content = try HAR.bytes(of: answered?["content"])
        let hasContent = method != .head && code != 304 && (answered?.value(at: "/content/size")?.integer ?? 0) > 0
        return (
            inner,
            Recorded(
                head: head,
                body: content ?? (hasContent ? nil : []),
                url: url,
                worldPath: String(decoding: inner.droppedPrefix, as: UTF8.self)
            )
        )
    }

    func reply(to request: Request) -> Reply {
        let key = Key(request)
        let recorded = state.withLock { state -> Recorded? in
            guard let replies = state.replies[key] else { return nil }
            let count = state.counts[key, default: 0]
            state.counts[key] = count + 1
            return replies[min(count, replies.count - 1)]
        }
        guard let recorded, let body = recorded.body else {
            let what = "reply to \(request.method) \(request.targetText.prefix(200))"
            return ProblemType.notFound(
                recorded == nil
                    ? "The recording has no \(what) with this body."
                    : "The recording has the \(what) without its content. Save the archive with content."
            ).reply(to: request)
        }
        let location = ProxyLocation(
            authority: recorded.url.authority,
            isSecure: recorded.url.scheme.isSecure,
            basePath: recorded.worldPath,
            for: request
        )
        return ProxyRelay.reply(recorded.head, body, to: request, location)
    }

    /// The head of a reply whose content is not coded any more.
    private static func head(
        _ json: JSONValue?,
        _ code: Int,
        to request: Request
    ) throws(FileError) -> ResponseHead {
        var text = "HTTP/1.1 \(code) \(Status(code: code).reasonPhrase)\r\n"
        // The length of what a GET would have returned (RFC 9110 §8.6).
        var omitted =
            request.method == .head || code == 304 ? ["transfer-encoding"] : ["transfer-encoding", "content-length"]
        if json?.value(at: "/content/_isCoded") == nil { omitted.append("content-encoding") }
        for field in json?["headers"]?.array ?? [] {
            // The names of HTTP/2 that begin with a colon are no fields.
            guard let name = field["name"]?.string, FieldName(name) != nil, !omitted.contains(name.lowercased()) else {
                continue
            }
            // Browsers join fields of one name with line breaks.
            for value in (field["value"]?.string ?? "").split(
                omittingEmptySubsequences: false,
                whereSeparator: \.isNewline
            ) {
                text += "\(name): \(value)\r\n"
            }
        }
        var reader = ResponseReader(isHead: request.method == .head)
        var events: [ResponseReader.Event] = []
        let bytes = Array((text + "\r\n").utf8)
        do { try reader.receive(bytes.span, &events) } catch {
            throw FileError("`response` is none of HTTP/1: \(error)")
        }
        guard case .head(let head)? = events.first else { throw FileError("`response.headers` are no fields") }
        return head
    }
}
