import LarderBackend
import LarderEngine
import LarderHTTP
import LarderTime
import LarderWebSocket
import Synchronization

/// One request that was sent on, and its reply.
final class ProxyRelay: Sendable {
    private enum Phase {
        case waiting
        case collecting(Status, Fields, [UInt8])
        case eventStream(ProxyEventStream)
        case webSocket(ProxyWebSocket)
        case done
    }

    private struct State {
        var phase = Phase.waiting
        var task: UpstreamTask?
    }

    private let request: Request
    private let exchange: Exchange
    private let world: World
    /// Host and port of the server, for error replies.
    private let origin: String
    private let state = Mutex(State())

    init(_ request: Request, _ exchange: Exchange, _ world: World, origin: String) {
        self.request = request
        self.exchange = exchange
        self.world = world
        self.origin = origin
    }

    /// The request in flight; set after the first events if they arrive at once.
    var task: UpstreamTask? {
        get { state.withLock { $0.task } }
        set { state.withLock { $0.task = newValue } }
    }

    /// Called on the loop of the exchange.
    func received(_ event: UpstreamEvent) {
        switch event {
        case .head(let status, let fields): began(status, fields)
        case .content(let bytes): received(bytes)
        case .end: ended()
        case .failed(let failure): failed(failure)
        }
    }

    private func began(_ status: Status, _ fields: Fields) {
        let isStream = fields[.contentType]?.lowercased().hasPrefix("text/event-stream") ?? false
        if status == .switchingProtocols {
            openWebSocket(fields)
        } else if status == .ok, isStream, request.method != .head {
            let stream = ProxyEventStream(task)
            state.withLock { $0.phase = .eventStream(stream) }
            var passed = Self.passedOn(fields)
            passed.remove(.contentType)
            passed.remove(.contentLength)
            // The engine adds its own.
            passed.remove(.date)
            complete(.eventStream(passed, stream))
        } else {
            state.withLock { $0.phase = .collecting(status, fields, []) }
        }
    }

    private func received(_ bytes: [UInt8]) {
        let (target, isTooLarge) = state.withLock { state -> (Phase, Bool) in
            guard case .collecting(let status, let fields, var body) = state.phase else { return (state.phase, false) }
            // The array has one owner while it grows.
            state.phase = .done
            body.append(contentsOf: bytes)
            let isTooLarge = body.count > ProxyOrigin.bodyBytesMaximum
            state.phase = isTooLarge ? .done : .collecting(status, fields, body)
            return (.waiting, isTooLarge)
        }
        switch target {
        case .eventStream(let stream): stream.received(bytes)
        case .webSocket(let socket): socket.received(bytes)
        case .waiting, .collecting, .done: break
        }
        guard isTooLarge else { return }
        task?.cancel()
        let maximum = ProxyOrigin.bodyBytesMaximum
        complete(
            ProblemType.badGateway("The reply of \(origin) has more than \(maximum) bytes, the maximum of the proxy.")
                .reply
        )
    }

    private func ended() {
        switch state.withLock({ Swift.exchange(&$0.phase, with: .done) }) {
        case .collecting(let status, let fields, let body): complete(Self.reply(status, fields, body, to: request))
        case .eventStream(let stream): stream.ended()
        case .webSocket(let socket): socket.ended()
        case .waiting, .done: break
        }
    }

    private func failed(_ failure: UpstreamFailure) {
        switch state.withLock({ Swift.exchange(&$0.phase, with: .done) }) {
        // A reply that ended early is not passed on as if it were complete: its head is not sent yet.
        case .waiting, .collecting: complete(problem(failure).reply)
        case .eventStream(let stream): stream.failed()
        case .webSocket(let socket): socket.ended()
        case .done: break
        }
    }

    private func problem(_ failure: UpstreamFailure) -> Problem {
        switch failure {
        case .unreachable(let why): ProblemType.badGateway("\(origin) cannot be reached: \(why)")
        case .timedOut(let why): ProblemType.gatewayTimeout("\(origin): \(why)")
        case .invalid(let why): ProblemType.badGateway("The reply of \(origin) is not valid HTTP: \(why)")
        case .tooMany(let count):
            ProblemType.unavailable("\(count) requests already wait for a connection to \(origin).")
        }
    }

    private func complete(_ reply: Reply) {
        var reply = reply
        reply.note.owner = world
        exchange.complete(reply)
    }

    // MARK: Replies

    private static func passedOn(_ fields: Fields) -> Fields {
        let omitted = ProxyFields.omitted(connection: fields.combined(.connection))
        var passed = fields
        passed.removeAll { omitted.contains($0) }
        return passed
    }

    /// The reply with the server's fields, without those of its connection.
    static func reply(_ status: Status, _ fields: Fields, _ body: [UInt8], to request: Request) -> Reply {
        var passed = passedOn(fields)
        // The length of what a GET would have returned (RFC 9110 §8.6).
        let statesOtherLength = request.method == .head || status == .notModified
        if !statesOtherLength { passed.remove(.contentLength) }
        if !statesOtherLength, !status.hasNoContent { passed.set(.contentLength, String(body.count)) }
        let via = passed.combined(.via).map { $0 + ", 1.1 larder" } ?? "1.1 larder"
        passed.set(.via, via)
        var head = "HTTP/1.1 \(status.code) \(status.reasonPhrase)\r\n"
        for field in passed { head += "\(field.name): \(field.value)\r\n" }
        let content = PreparedResponse(status: status, head: Array(head.utf8), body: body)
        var reply = Reply.prepared(content, extra: [])
        // A recipient with a clock does not replace the origin's date (RFC 9110 §6.6.1).
        if passed.contains(.date) { reply.date = [] }
        return reply
    }

    private func openWebSocket(_ fields: Fields) {
        let expected = request.fields.combined(.secWebSocketKey).map { WebSocketHandshake.accept(forKey: $0) }
        guard let task, fields[.secWebSocketAccept] == expected else {
            self.task?.cancel()
            state.withLock { $0.phase = .done }
            return complete(
                ProblemType.badGateway("\(origin) answered the WebSocket upgrade with a wrong Sec-WebSocket-Accept.")
                    .reply
            )
        }
        let socket = ProxyWebSocket(task)
        state.withLock { $0.phase = .webSocket(socket) }
        let subprotocols = fields[.secWebSocketProtocol].map { [$0] } ?? []
        complete(.webSocket(WebSocketAcceptance(handler: socket, subprotocols: subprotocols)))
    }
}
