import LarderEvents
import LarderHTTP
import LarderHTTPWire
import LarderTime
import Synchronization

/// Opens `ws` and `wss` WebSockets with the addresses, the proxies and the TLS settings of a transport. The handshake is an exchange of the
/// transport, whose socket then goes on as a WebSocket. Safe from any task.
struct SocketWebSocketConnector: WebSocketConnector {
    let transport: SocketTransport
    let random: SharedRandom

    /// The most content of a rejection.
    private static let bodyBytesMaximum = 64 << 10

    func connect(
        _ request: WebSocketClient.Request,
        _ configuration: WebSocketClient.Configuration
    ) async throws(WebSocketError) -> any WebSocketConnection {
        let upgrade = WebSocketUpgrade(key: random.bytes(16), subprotocols: request.subprotocols)
        let (clock, timeout) = (transport.clock, configuration.openTimeout)
        let deadline = clock.uptime + timeout
        let late = WebSocketError(.timedOut, "The WebSocket was not open within \(timeout).")
        func unopened(_ error: TransportError) -> WebSocketError {
            error.code != .cancelled && clock.uptime >= deadline ? late : WebSocketError(unopened: error)
        }
        let url = try request.checkedURL()
        let exchange: SocketExchange
        do throws(TransportError) { exchange = try await self.exchange(url, request.fields, upgrade, timeout) } catch {
            throw unopened(error)
        }
        let timer = Task {
            // It is cancelled when the WebSocket is open.
            do { try await clock.sleep(until: deadline) } catch { return }
            exchange.timeOut(late.description)
        }
        defer { timer.cancel() }
        if Task.isCancelled { throw Self.cancelled }
        transport.pool.start(exchange)
        let status: Status
        let fields: Fields
        do throws(TransportError) { (status, fields) = try await exchange.head().get() } catch { throw unopened(error) }
        guard let (head, link, rest) = exchange.takeUpgraded() else {
            throw await rejection(status, fields, exchange)
        }
        let subprotocol: String?
        do throws(WebSocketError) { subprotocol = try upgrade.agreed(head) } catch {
            link.close()
            throw error
        }
        let loop = transport.pool.loop
        let channel = SocketWebSocketChannel(configuration, link, clock: clock, random: random, loop: loop)
        channel.start(rest)
        return SocketWebSocket(channel, subprotocol, fields)
    }

    private static var cancelled: WebSocketError {
        WebSocketError(.cancelled, "The task that opens the WebSocket was cancelled.")
    }

    /// The exchange of the handshake.
    private func exchange(
        _ url: HTTPURL,
        _ fields: Fields,
        _ upgrade: WebSocketUpgrade,
        _ timeout: Duration
    ) async throws(TransportError) -> SocketExchange {
        let proxy = try transport.configuration.proxies.proxy(for: url)
        return SocketExchange(
            TransportRequest(url: url.text, bodyLimit: .max),
            Endpoint(url, proxy: proxy),
            upgrade.request(target: url.target, authority: url.authority, fields: fields),
            tls: try await transport.secureClient(for: url, within: timeout),
            connectTimeout: timeout,
            bufferMaximum: Self.bodyBytesMaximum,
            pool: transport.pool
        )
    }

    /// A response that is no 101, with what arrives of its content in time.
    private func rejection(_ status: Status, _ fields: Fields, _ exchange: SocketExchange) async -> WebSocketError {
        var body: [UInt8] = []
        while body.count < Self.bodyBytesMaximum, case .success(let piece?) = await exchange.piece() { body += piece }
        exchange.abandon(TransportError(.cancelled, "The server has rejected the WebSocket."))
        if Task.isCancelled { return Self.cancelled }
        return WebSocketError(
            .rejected,
            "The server answered with \(status.code) instead of a WebSocket.",
            status: status,
            fields: fields,
            body: Array(body.prefix(Self.bodyBytesMaximum))
        )
    }
}

/// Ends the channel when its last user is released.
private final class SocketWebSocket: WebSocketConnection {
    private let channel: SocketWebSocketChannel

    let subprotocol: String?
    let fields: Fields

    init(_ channel: SocketWebSocketChannel, _ subprotocol: String?, _ fields: Fields) {
        (self.channel, self.subprotocol, self.fields) = (channel, subprotocol, fields)
    }

    deinit { cut() }

    var closing: WebSocketClient.Close? { channel.state.withLock { $0.closing } }

    func receive() async throws(WebSocketError) -> WebSocketClient.Message? { try await channel.receive() }

    func send(_ message: WebSocketClient.Message) async throws(WebSocketError) {
        switch message {
        case .text(let text): try await channel.send(.text, Array(text.utf8))
        case .binary(let bytes): try await channel.send(.binary, bytes)
        }
    }

    func ping() async throws(WebSocketError) { try await channel.ping() }

    func close(_ close: WebSocketClient.Close) async -> WebSocketClient.Close? { await channel.close(close) }

    func cut() { channel.cut(WebSocketError(.cancelled, "The WebSocket was closed without a close frame.")) }
}
