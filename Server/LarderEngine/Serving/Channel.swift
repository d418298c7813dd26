import LarderHTTP

/// The application's side of a channel: a WebSocket, or a stream of Server-Sent Events. Called on the connection's loop.
package protocol ChannelHandler: AnyObject, Sendable {
    func opened(_ handle: ChannelHandle)
    /// A message has come. A stream of events has none.
    func received(text: [UInt8])
    func received(binary: [UInt8])
    /// The connection is over. A stream of events has vanished, however it ended.
    func closed(_ ending: WebSocketEnding)
    /// Whether the handler sends heartbeats itself, by its own clock.
    var ownsHeartbeat: Bool { get }
}

extension ChannelHandler {
    package func received(text: [UInt8]) {}
    package func received(binary: [UInt8]) {}
    package var ownsHeartbeat: Bool { false }
}

/// How a WebSocket ended.
package enum WebSocketEnding: Sendable, Hashable {
    /// With a close frame of the peer, or of this server after an error of the peer. A frame without a code is 1005 in the API of
    /// browsers.
    case closed(code: UInt16?, reason: String)
    /// Without a close frame: 1006 in the API of browsers (RFC 6455 §7.1.5).
    case vanished
}

/// The acceptance of a WebSocket upgrade.
package struct WebSocketAcceptance: Sendable {
    let handler: any ChannelHandler
    let subprotocols: [String]

    /// - Parameters:
    ///   - subprotocols: the supported ones; the client's first match is selected.
    package init(handler: any ChannelHandler, subprotocols: [String] = []) {
        self.handler = handler
        self.subprotocols = subprotocols
    }

    func head(for request: Request) throws(Rejection) -> ReplyHead {
        guard request.method == .get, request.minorVersion == 1 else {
            throw WebSocketHandshake.notAnUpgrade
        }
        var head = ReplyHead(.switchingProtocols)
        head.append("Upgrade", "websocket")
        head.append("Connection", "Upgrade")
        head.append("Sec-WebSocket-Accept", try WebSocketHandshake.accept(request.handshakeField))
        let offered = request.fields.combined(.secWebSocketProtocol)
        if let chosen = WebSocketHandshake.subprotocol(offered: offered, supported: subprotocols) {
            head.append("Sec-WebSocket-Protocol", chosen)
        }
        return head
    }
}

/// Sends on a channel, from any thread. Has no effect after its end.
package struct ChannelHandle: Sendable {
    package let loop: EventLoop
    let connection: UInt64

    /// Sends complete events in the format of the HTML standard, or encoded frames.
    package func send(_ content: [UInt8]) { withChannel { $0.send(content) } }

    package func send(text: [UInt8]) { send(WebSocketEncoder.frame(.text, text)) }

    package func send(binary: [UInt8]) { send(WebSocketEncoder.frame(.binary, binary)) }

    /// Ends a stream of events, or begins the closing handshake of a WebSocket; without a code the close frame is empty.
    package func close(code: UInt16? = nil, reason: String = "") {
        withChannel { $0.close(code: code, reason: reason) }
    }

    /// Closes the connection after the pending bytes, without a close frame or the end of the stream.
    package func abort() { withChannel { $0.abort() } }

    /// Sends a heartbeat. A WebSocket sends none while one is unanswered.
    package func ping() { withChannel { $0.ping() } }

    private func withChannel(_ body: @escaping @Sendable (Channel) -> Void) {
        let connection = connection
        loop.execute { [loop] in
            guard case .channel(let channel)? = loop.connection(connection)?.mode else { return }
            body(channel)
        }
    }
}

/// A connection that has become a WebSocket (RFC 6455) or a stream of events. Confined to its loop.
final class Channel {
    enum Kind {
        case webSocket
        /// With chunks if the peer supports them; for HTTP/1.0 the stream ends with the connection.
        case eventStream(isChunked: Bool)
    }

    let kind: Kind
    private let handler: any ChannelHandler
    private unowned let connection: Connection
    private var parser: WebSocketParser
    private var hasSentClose = false
    private var awaitsPong = false
    private var isOver = false
    private var ending = WebSocketEnding.vanished

    init(_ kind: Kind, _ handler: any ChannelHandler, _ connection: Connection) {
        self.kind = kind
        self.handler = handler
        self.connection = connection
        parser = WebSocketParser(
            role: .server,
            messageBytesMaximum: connection.loop.configuration.webSocketMessageBytesMaximum
        )
    }

    func start() { handler.opened(ChannelHandle(loop: connection.loop, connection: connection.id)) }

    func received(_ bytes: [UInt8]) {
        guard case .webSocket = kind else { return }
        awaitsPong = false
        var events: [WebSocketEvent] = []
        parser.receive(bytes.span, &events)
        for event in events where !isOver {
            switch event {
            case .text(let text): if !hasSentClose { handler.received(text: text) }
            case .binary(let binary): if !hasSentClose { handler.received(binary: binary) }
            case .ping(let payload): send(WebSocketEncoder.frame(.pong, payload))
            case .pong: break
            case .close(let code, let reason):
                ending = .closed(code: code?.rawValue, reason: reason)
                finish(code, "", lingers: false)
            case .failed(let code, let reason):
                ending = .closed(code: code.rawValue, reason: reason)
                // The peer does not know of the close yet and may be in the middle of a message: its bytes are read and
                // discarded, so that the code is not lost in a reset.
                finish(code, reason, lingers: true)
            }
        }
    }

    func send(_ content: [UInt8]) {
        guard !hasSentClose, !isOver, !content.isEmpty else { return }
        connection.sendChannel(content)
    }

    func framed(_ content: [UInt8]) -> [UInt8] {
        if case .eventStream(isChunked: true) = kind { ChunkedEncoder.chunk(content) } else { content }
    }

    func close(code: UInt16?, reason: String) {
        if connection.isLingering { return connection.close() }
        guard !isOver else { return }
        guard case .eventStream(let isChunked) = kind else {
            return sendClose(code.map { WebSocketCloseCode(rawValue: $0) }, reason)
        }
        connection.closeAfterContent(isChunked ? ChunkedEncoder.end : [])
        connectionClosed()
    }

    /// Called after a period of silence: sends a heartbeat the first time, and closes a WebSocket that has not answered the second time.
    func heartbeat() {
        // The peer has had one interval to answer the close frame. This also applies if the handler sends the pings.
        if connection.isLingering || hasSentClose { return connection.close() }
        guard !handler.ownsHeartbeat else { return }
        if awaitsPong { connection.close() } else { ping() }
    }

    /// A comment keeps proxies and clients from timing out, as a ping does.
    func ping() {
        guard case .webSocket = kind else { return send(Array(": alive\n\n".utf8)) }
        guard !awaitsPong else { return }
        awaitsPong = true
        send(WebSocketEncoder.frame(.ping, []))
    }

    func abort() { connection.closeAfterContent() }

    func connectionClosed() {
        guard !isOver else { return }
        isOver = true
        handler.closed(ending)
    }

    /// Sends the close frame after the handler's replies to earlier messages, which also go through the loop's mailbox.
    private func finish(_ code: WebSocketCloseCode?, _ reason: String, lingers: Bool) {
        let id = connection.id
        connection.loop.execute { [loop = connection.loop] in
            guard let connection = loop.connection(id), case .channel(let channel) = connection.mode else { return }
            channel.sendClose(code, reason)
            connection.isLingering = lingers
            connection.closeAfterContent()
        }
    }

    private func sendClose(_ code: WebSocketCloseCode?, _ reason: String) {
        send(WebSocketEncoder.frame(.close, WebSocketEncoder.closePayload(code, reason)))
        hasSentClose = true
    }
}
