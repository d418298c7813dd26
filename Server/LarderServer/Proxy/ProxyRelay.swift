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
        case collecting(ResponseHead, [UInt8])
        case channel
        case done
    }

    private struct State {
        var phase = Phase.waiting
        var task: UpstreamTask?
        /// Weak: a channel whose reply was never sent, because the client was gone or a fault has replaced the reply, is released
        /// and cancels the request.
        weak var channel: (any ProxyChannel)?
    }

    private let request: Request
    private let exchange: Exchange
    private let world: World
    /// Host and port of the server.
    private let authority: String
    private let basePath: String
    private let state = Mutex(State())

    init(_ request: Request, _ exchange: Exchange, _ world: World, authority: String, basePath: String) {
        self.request = request
        self.exchange = exchange
        self.world = world
        self.authority = authority
        self.basePath = basePath
    }

    /// The request in flight; set after the first events if they arrive at once.
    var task: UpstreamTask? {
        get { state.withLock { $0.task } }
        set { state.withLock { $0.task = newValue } }
    }

    /// Called on the loop of the exchange.
    func received(_ event: UpstreamEvent) {
        switch event {
        case .head(let head): began(head)
        case .content(let bytes): received(bytes)
        case .end: ended()
        case .failed(let failure): failed(failure)
        }
    }

    private func began(_ head: ResponseHead) {
        if head.status == .switchingProtocols {
            openWebSocket(head)
        } else if let coding = unsupportedCoding(head) {
            task?.cancel()
            state.withLock { $0.phase = .done }
            complete(
                ProblemType.badGateway(
                    "The reply of \(authority) has the transfer coding '\(coding.prefix(100))'. "
                        + "The proxy supports only 'chunked' (RFC 9112 section 6.1)."
                ).reply
            )
        } else if head.status == .ok, head.isEventStream, request.method != .head {
            let stream = ProxyEventStream(task)
            begin(stream)
            var reply = Reply(.eventStream(extra: Self.streamLines(head), stream))
            if head.lines.range(of: "date") != nil { reply.date = [] }
            complete(reply)
        } else {
            state.withLock { $0.phase = .collecting(head, []) }
        }
    }

    /// The transfer codings of content that the proxy cannot decode; nil if there are none.
    private func unsupportedCoding(_ head: ResponseHead) -> String? {
        guard head.lines.range(of: "transfer-encoding") != nil, request.method != .head, !head.status.hasNoContent,
            let codings = head.lines.combined(.transferEncoding),
            FieldList.members(of: codings.lowercased()) != ["chunked"]
        else { return nil }
        return codings
    }

    private func begin(_ channel: any ProxyChannel) {
        state.withLock { state in
            state.phase = .channel
            state.channel = channel
        }
    }

    private func received(_ bytes: [UInt8]) {
        let (channel, isTooLarge) = state.withLock { state -> ((any ProxyChannel)?, Bool) in
            guard case .collecting(let head, var body) = state.phase else { return (state.channel, false) }
            // The array has one owner while it grows.
            state.phase = .done
            if body.isEmpty { body = bytes } else { body.append(contentsOf: bytes) }
            let isTooLarge = body.count > ProxyOrigin.bodyBytesMaximum
            if !isTooLarge { state.phase = .collecting(head, body) }
            return (nil, isTooLarge)
        }
        channel?.received(bytes)
        guard isTooLarge else { return }
        task?.cancel()
        let maximum = ProxyOrigin.bodyBytesMaximum
        complete(
            ProblemType.badGateway(
                "The reply of \(authority) has more than \(maximum) bytes, the maximum of the proxy."
            )
            .reply
        )
    }

    private var channel: (any ProxyChannel)? { state.withLock { $0.channel } }

    private func ended() {
        switch state.withLock({ Swift.exchange(&$0.phase, with: .done) }) {
        case .collecting(let head, let body):
            let location = ProxyLocation(authority: authority, basePath: basePath, for: request)
            complete(Self.reply(head, body, to: request, location))
        case .channel: channel?.ended()
        case .waiting, .done: break
        }
    }

    private func failed(_ failure: UpstreamFailure) {
        switch state.withLock({ Swift.exchange(&$0.phase, with: .done) }) {
        // A reply that ended early is not passed on as if it were complete: its head is not sent yet.
        case .waiting, .collecting: complete(problem(failure).reply)
        case .channel: channel?.failed()
        case .done: break
        }
    }

    private func problem(_ failure: UpstreamFailure) -> Problem {
        switch failure {
        case .unreachable(let why): ProblemType.badGateway("\(authority) cannot be reached: \(why)")
        case .timedOut(let why): ProblemType.gatewayTimeout("\(authority): \(why)")
        case .invalid(let why):
            ProblemType.badGateway("The reply of \(authority) is not complete and valid HTTP: \(why)")
        case .tooMany(let count):
            ProblemType.unavailable("\(count) requests already wait for a connection to \(authority).")
        }
    }

    private func complete(_ reply: Reply) {
        var reply = reply
        reply.note.owner = world
        exchange.complete(reply)
    }

    // MARK: Replies

    private static let none: NameSet = []
    private static let length: NameSet = ["content-length"]

    /// The reply with the server's fields, without those of its connection.
    static func reply(_ head: ResponseHead, _ body: [UInt8], to request: Request, _ location: ProxyLocation) -> Reply {
        let (status, fields) = (head.status, head.lines)
        var lines = head.statusLine
        lines.reserveCapacity(fields.head.count + 64)
        // The length of what a GET would have returned (RFC 9110 §8.6).
        let statesOtherLength = request.method == .head || status == .notModified
        ProxyFields(fields).append(
            to: &lines,
            omitting: statesOtherLength ? Self.none : Self.length,
            minorVersion: Int(head.minorVersion),
            location: location
        )
        if !statesOtherLength, !status.hasNoContent {
            lines.append(contentsOf: "Content-Length: \(body.count)\r\n".utf8)
        }
        var reply = Reply.prepared(PreparedResponse(status: status, head: lines, body: body), extra: [])
        // A recipient with a clock does not replace the origin's date (RFC 9110 §6.6.1).
        if fields.range(of: "date") != nil { reply.date = [] }
        return reply
    }

    /// The field lines of an event stream; the engine adds the framing.
    private static func streamLines(_ head: ResponseHead) -> [UInt8] {
        var lines: [UInt8] = []
        ProxyFields(head.lines).append(
            to: &lines,
            omitting: Self.length,
            minorVersion: Int(head.minorVersion)
        )
        return lines
    }

    private func openWebSocket(_ head: ResponseHead) {
        let expected = request.fields.combined(.secWebSocketKey).map { WebSocketHandshake.accept(forKey: $0) }
        guard let task, head.lines[.secWebSocketAccept] == expected else {
            self.task?.cancel()
            state.withLock { $0.phase = .done }
            return complete(
                ProblemType.badGateway(
                    "\(authority) answered the WebSocket upgrade with a wrong Sec-WebSocket-Accept."
                ).reply
            )
        }
        let socket = ProxyWebSocket(task)
        begin(socket)
        var lines: [UInt8] = []
        // The engine adds the fields of the handshake.
        ProxyFields(head.lines).append(
            to: &lines,
            omitting: [
                "sec-websocket-accept", "sec-websocket-protocol", "sec-websocket-extensions", "content-length", "date",
            ],
            minorVersion: Int(head.minorVersion)
        )
        let subprotocols = head.lines[.secWebSocketProtocol].map { [$0] } ?? []
        let acceptance = WebSocketAcceptance(handler: socket, subprotocols: subprotocols, extra: lines)
        complete(.webSocket(acceptance))
    }
}
