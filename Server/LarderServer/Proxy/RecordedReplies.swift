import LarderBackend
import LarderEngine
import LarderHTTP
import Synchronization

/// Answers requests with the replies of a recording, without the server that gave them.
///
/// A request is recognised by its method, its target without the part that names a world, and its body. Equal requests get their replies
/// in the recorded order, also if they are for different worlds; the last one is repeated. Replies that a fault has cut are left out.
/// Safe from any thread.
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
        /// Host and port of the recorded request in normal form: the proxy's, which URLs in the reply name.
        var authority = ""
        /// The part of the recorded path that names the world, which paths in the reply begin with; empty for none.
        var worldPath = ""
    }

    private struct State {
        var replies: [Key: [Recorded]] = [:]
        /// How many replies of each key were sent.
        var counts: [Key: Int] = [:]
    }

    private let state: Mutex<State>

    /// - Parameter readsWorldPaths: whether a path below `/w/` names a world.
    init(_ file: RecordingFile, readsWorldPaths: Bool) {
        var state = State()
        for step in file.steps where step.ending.isEmpty {
            guard let request = Self.request(step.request),
                var reply = Self.reply(step.reply, isHead: request.method == .head)
            else { continue }
            let inner = request.droppingPathPrefix(
                WorldPath(request, readsPrefix: readsWorldPaths)?.prefixLength ?? 0
            )
            let authority = request.targetAuthority ?? request.fields[.host] ?? ""
            reply.authority = HTTPURL("http://" + authority, schemes: [.http])?.authority ?? ""
            reply.worldPath = String(decoding: inner.droppedPrefix, as: UTF8.self)
            state.replies[Key(inner), default: []].append(reply)
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
        let location = ProxyLocation(authority: recorded.authority, basePath: recorded.worldPath, for: request)
        return ProxyRelay.reply(recorded.head, recorded.body, to: request, location)
    }

    private static func request(_ bytes: [UInt8]) -> Request? {
        var reader = RequestReader(headBytesMaximum: bytes.count, bodyBytesMaximum: bytes.count)
        var consumed = 0
        while true {
            switch reader.next(bytes.span, &consumed) {
            case .request(let request): return request
            case .head, .awaitsContinue: continue
            case .incomplete, .rejected: return nil
            }
        }
    }

    private static func reply(_ bytes: [UInt8], isHead: Bool) -> Recorded? {
        var reader = ResponseReader(isHead: isHead)
        var events: [ResponseReader.Event] = []
        guard (try? reader.receive(bytes.span, &events)) != nil, (try? reader.end(&events)) != nil else { return nil }
        var (head, body) = (ResponseHead?.none, [UInt8]())
        for event in events {
            switch event {
            case .head(let received): head = received
            case .content(let piece): body += piece
            case .end: break
            }
        }
        return head.map { Recorded(head: $0, body: body) }
    }
}
