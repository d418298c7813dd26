import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime

/// Answers requests with the replies of an HTTP archive, without the server that gave them: a recording, or what a browser has saved.
///
/// A request is recognised by its method, its target without the part that names a world, and its body, as JSON if it is; HEAD is answered as GET
/// was. Equal requests get their replies in the recorded order, each world from its beginning; the last one is repeated. A condition on
/// the validators of a reply is answered with 304. Safe from any thread.
final class RecordedReplies: Sendable {
    private struct Key: Hashable {
        let method: Method
        let target: String
        let body: [UInt8]

        /// - Parameter request: without the part of its path that names the world.
        init(_ request: Request, as method: Method? = nil) {
            let target = request.targetText
            self.method = method ?? request.method
            // A path that names only a world is empty.
            self.target = target.hasPrefix("/") || target == "*" ? target : "/" + target
            body = Self.canonical(request.body)
        }

        /// The same for equal JSON; other bodies as they are.
        private static func canonical(_ body: [UInt8]) -> [UInt8] {
            do { return body.isEmpty ? [] : try JSONParser.parse(body).sorted.encoded } catch { return body }
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

    private let replies: [Key: (index: Int, recorded: [Recorded])]

    /// - Parameters:
    ///   - archive: HAR 1.2. Entries without a reply, and those of other schemes than HTTP, are left out.
    ///   - readsWorldPaths: whether a path below `/w/` names a world.
    /// - Throws: `FileError` or `JSONError` if it is no archive, with the place of an entry that cannot be played.
    init(_ archive: [UInt8], readsWorldPaths: Bool) throws {
        let document: JSONValue
        do { document = try JSONParser.parse(archive) } catch {
            throw FileError("The file of --play is no HTTP archive: it is not JSON: \(error)")
        }
        guard let entries = document.value(at: "/log/entries")?.array else {
            throw FileError(
                "The file of --play is no HTTP archive (`log.entries`): larder-server recording start, then save FILE, makes one"
            )
        }
        var replies: [Key: (index: Int, recorded: [Recorded])] = [:]
        for (index, entry) in entries.enumerated() {
            do throws(FileError) {
                guard let (request, recorded) = try Self.read(entry, readsWorldPaths) else { continue }
                var known = replies[Key(request)] ?? (replies.count, [])
                // A 304 says that the reply before is still the one.
                known.recorded.append(recorded.head.status == .notModified ? known.recorded.last ?? recorded : recorded)
                replies[Key(request)] = known
            } catch {
                throw FileError(
                    "The archive of --play has an entry that cannot be played: /log/entries/\(index): \(error)"
                )
            }
        }
        guard !replies.isEmpty else { throw FileError("The archive of --play has no reply that can be played") }
        self.replies = replies
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

    /// The next reply of a world.
    func reply(to request: Request, in world: World) -> Reply {
        let isHead = request.method == .head
        let own = replies[Key(request)]
        guard let known = own ?? (isHead ? replies[Key(request, as: .get)] : nil) else {
            return ProblemType.notFound(
                "The recording has no reply to \(request.method) \(request.targetText.prefix(200)) with this body."
            ).reply(to: request)
        }
        // A HEAD that was not recorded is no step in the order of GET.
        let count = world.control.played.count(known.index, advances: own != nil)
        let recorded = known.recorded[min(count, known.recorded.count - 1)]
        guard let body = recorded.body else {
            return ProblemType.notFound(
                "The recording has the reply to \(request.method) \(request.targetText.prefix(200)) without its content. "
                    + "Save the archive with content."
            ).reply(to: request)
        }
        let location = ProxyLocation(
            authority: recorded.url.authority,
            isSecure: recorded.url.scheme.isSecure,
            basePath: recorded.worldPath,
            for: request
        )
        let method = own == nil ? .get : request.method
        let reply = ProxyRelay.reply(recorded.head, body, to: method, location)
        return isUnchanged(recorded.head, request, world) ? reply.notModified : reply
    }

    /// Whether the client holds the reply, as it says in `If-None-Match` or `If-Modified-Since`.
    private func isUnchanged(_ head: ResponseHead, _ request: Request, _ world: World) -> Bool {
        guard head.status == .ok, request.method.isSafe else { return false }
        let now = world.clock.now
        let outcome = Preconditions(request).evaluate(
            method: request.method,
            exists: true,
            entityTag: head.lines[.etag].flatMap { EntityTag(parsing: $0) },
            lastModified: head.lines[.lastModified].flatMap { HTTPDate.parse($0, now: now) },
            now: now
        )
        return outcome == .notModified
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
        // Lifetimes begin when the reply is played.
        omitted.append("date")
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

extension Reply {
    /// The 304 for a 200, without the fields of the content (RFC 9110 §15.4.5).
    fileprivate var notModified: Reply {
        var reply = self
        reply.head.setStatus(.notModified)
        for name in ["content-length", "content-type", "content-encoding"] { reply.head.remove(name) }
        reply.body = .bytes([])
        return reply
    }
}
