import LarderHTTP
import LarderHTTPWire
import LarderTime

/// Receives the messages of a WebSocket. Called on the connection's loop.
package protocol WebSocketHandler: AnyObject, Sendable {
    func opened(_ handle: WebSocketHandle)
    func received(text: [UInt8])
    func received(binary: [UInt8])
    /// The connection is over.
    func closed(_ ending: WebSocketEnding)
    /// Whether the handler sends pings itself, by its own clock.
    var ownsHeartbeat: Bool { get }
}

extension WebSocketHandler {
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
    let handler: any WebSocketHandler
    let subprotocols: [String]

    /// - Parameters:
    ///   - subprotocols: the supported ones; the client's first match is selected.
    package init(handler: any WebSocketHandler, subprotocols: [String] = []) {
        self.handler = handler
        self.subprotocols = subprotocols
    }
}

/// Sends on a WebSocket, from any thread. Has no effect after it is closed.
package struct WebSocketHandle: Sendable {
    package let loop: EventLoop
    let connection: UInt64

    package func send(text: [UInt8]) { send(.text, text) }

    package func send(binary: [UInt8]) { send(.binary, binary) }

    /// Sends an encoded frame.
    package func send(frame: [UInt8]) {
        withChannel { $0.send(frame: frame) }
    }

    /// Begins the closing handshake; without a code the close frame is empty.
    package func close(code: UInt16?, reason: String) {
        withChannel { $0.close(code: code, reason: reason) }
    }

    private func send(_ opcode: WebSocketEncoder.Opcode, _ payload: [UInt8]) {
        var frame: [UInt8] = []
        WebSocketEncoder.append(opcode, payload, to: &frame)
        send(frame: frame)
    }

    /// Closes the connection after the pending bytes, without a close frame.
    package func abort() { withChannel { $0.abort() } }

    /// Sends a ping, unless one is unanswered.
    package func ping() { withChannel { $0.ping() } }

    private func withChannel(_ body: @escaping @Sendable (WebSocketChannel) -> Void) {
        let connection = connection
        loop.execute { [loop] in
            guard let channel = loop.connection(connection)?.webSocketChannel else { return }
            body(channel)
        }
    }
}

/// A connection that has become a WebSocket (RFC 6455). Confined to its loop.
final class WebSocketChannel {
    /// Why a request cannot become a WebSocket.
    enum Failure: Error {
        case notAnUpgrade
        case version
        case key

        var rejection: Rejection {
            switch self {
            case .notAnUpgrade: Rejection(.malformed, "The request is not a WebSocket upgrade.")
            case .version:
                Rejection(.unsupportedWebSocketVersion, "Only version 13 of the WebSocket protocol is supported.")
            case .key: Rejection(.malformed, "Sec-WebSocket-Key must be 16 bytes in Base64.")
            }
        }
    }

    private let handler: any WebSocketHandler
    private unowned let connection: Connection
    private var parser: WebSocketParser
    private var hasSentClose = false
    private var awaitsPong = false
    private var isOver = false
    private var ending = WebSocketEnding.vanished

    private init(_ handler: any WebSocketHandler, _ connection: Connection) {
        self.handler = handler
        self.connection = connection
        parser = WebSocketParser(
            role: .server,
            messageBytesMaximum: connection.loop.configuration.webSocketMessageBytesMaximum
        )
    }

    /// The head of the 101 reply, and the channel.
    static func accept(
        _ acceptance: WebSocketAcceptance,
        _ request: Request,
        _ connection: Connection
    ) throws(Failure) -> (ReplyHead, WebSocketChannel) {
        let accept: String
        guard request.method == .get, request.minorVersion == 1 else { throw .notAnUpgrade }
        do {
            accept = try WebSocketHandshake.accept(request.handshakeField)
        } catch {
            switch error {
            case .notAnUpgrade: throw .notAnUpgrade
            case .version: throw .version
            case .key: throw .key
            }
        }
        var head = ReplyHead(.switchingProtocols)
        head.append("Upgrade", "websocket")
        head.append("Connection", "Upgrade")
        head.append("Sec-WebSocket-Accept", accept)
        let offered = request.fields.combined(.secWebSocketProtocol)
        if let chosen = WebSocketHandshake.subprotocol(offered: offered, supported: acceptance.subprotocols) {
            head.append("Sec-WebSocket-Protocol", chosen)
        }
        return (head, WebSocketChannel(acceptance.handler, connection))
    }

    func start() { handler.opened(WebSocketHandle(loop: connection.loop, connection: connection.id)) }

    func received(_ bytes: Span<UInt8>) {
        awaitsPong = false
        var events: [WebSocketEvent] = []
        parser.receive(bytes, &events)
        for event in events where !isOver {
            switch event {
            case .text(let text): if !hasSentClose { handler.received(text: text) }
            case .binary(let binary): if !hasSentClose { handler.received(binary: binary) }
            case .ping(let payload): if !hasSentClose { send(.pong, payload) }
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

    func send(frame: [UInt8]) {
        guard !hasSentClose, !isOver else { return }
        connection.sendChannel(frame)
    }

    func close(code: UInt16?, reason: String) {
        if connection.isLingering { return connection.close() }
        guard !hasSentClose, !isOver else { return }
        sendClose(code.map { WebSocketCloseCode(rawValue: $0) }, reason)
    }

    /// Called after a period of silence: sends a ping the first time, and closes the connection the second time.
    func heartbeat() {
        // The peer has had one interval to answer the close frame. This also applies if the handler sends the pings.
        if connection.isLingering || hasSentClose { return connection.close() }
        guard !handler.ownsHeartbeat else { return }
        guard !awaitsPong else { return connection.close() }
        awaitsPong = true
        send(.ping, [])
    }

    func ping() {
        guard !awaitsPong, !hasSentClose else { return }
        awaitsPong = true
        send(.ping, [])
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
            guard let connection = loop.connection(id), let channel = connection.webSocketChannel else { return }
            channel.sendClose(code, reason)
            connection.isLingering = lingers
            connection.closeAfterContent()
        }
    }

    private func sendClose(_ code: WebSocketCloseCode?, _ reason: String) {
        guard !hasSentClose else { return }
        send(.close, WebSocketEncoder.closePayload(code, reason))
        hasSentClose = true
    }

    private func send(_ opcode: WebSocketEncoder.Opcode, _ payload: [UInt8]) {
        var frame: [UInt8] = []
        WebSocketEncoder.append(opcode, payload, to: &frame)
        connection.sendChannel(frame)
    }
}
