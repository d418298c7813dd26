import LarderEvents
import LarderHTTP
import LarderHTTPWire
import LarderTLS
import LarderTime
import Synchronization

/// Opens `ws` and `wss` WebSockets over POSIX sockets. One thread of the process serves all of them.
///
/// The addresses of a host are tried as in RFC 8305. Safe from any task.
struct SocketWebSocketConnector: WebSocketConnector {
    private let clock: any MonotonicClock
    private let random: SharedRandom
    private let resolver: HostResolver
    private let tls: LazyTLSClient
    private let proxies: ProxySettings
    private let wallClock: any WallClock
    private let loop: SocketLoop

    init(
        clock: any MonotonicClock,
        random: any RandomNumberGenerator & Sendable,
        tls: LazyTLSClient,
        proxies: ProxySettings,
        wallClock: any WallClock,
        resolver: HostResolver,
        loop: SocketLoop
    ) {
        self.tls = tls
        self.proxies = proxies
        self.wallClock = wallClock
        self.clock = clock
        self.random = SharedRandom(random)
        self.resolver = resolver
        self.loop = loop
    }

    /// Connects and performs the handshake.
    func connect(
        _ request: WebSocketClient.Request,
        _ configuration: WebSocketClient.Configuration
    ) async throws(WebSocketError) -> any WebSocketConnection {
        let url = try request.checkedURL()
        let endpoint: Endpoint
        do throws(TransportError) { endpoint = Endpoint(url, proxy: try proxies.proxy(for: url)) } catch {
            throw WebSocketError(unopened: error)
        }
        let session = try await session(for: url)
        if Task.isCancelled { throw WebSocketError(.cancelled, "The task that connects was cancelled.") }
        let deadline = clock.uptime + configuration.openTimeout
        let addresses = try await addresses(of: endpoint, deadline, configuration)
        let descriptor = try await descriptor(of: endpoint, addresses, deadline)
        let upgrade = WebSocketUpgrade(key: random.bytes(16), subprotocols: request.subprotocols)
        let channel = SocketWebSocketChannel(
            configuration,
            upgrade,
            request: upgrade.request(target: url.target, authority: url.authority, fields: request.fields),
            deadline: deadline,
            clock: clock,
            random: random,
            loop: loop
        )
        try await channel.open(descriptor, endpoint.proxy.map { ProxyTunnel($0, to: endpoint) }, session)
        return SocketWebSocket(channel)
    }

    /// What makes the TLS session; nil for `ws`.
    private func session(
        for url: HTTPURL
    ) async throws(WebSocketError) -> (@Sendable () throws(TLSError) -> TLSSession)? {
        guard url.scheme.isSecure else { return nil }
        let made: TLSClient?
        do throws(TLSError) { made = try await tls.get() } catch { throw WebSocketError(unopened: error) }
        guard let client = made else { throw WebSocketError(.cancelled, "The task that connects was cancelled.") }
        let now = wallClock.now
        return { () throws(TLSError) in try client.session(host: url.host, port: url.port, now: now) }
    }

    private func addresses(
        of endpoint: Endpoint,
        _ deadline: MonotonicTime,
        _ configuration: WebSocketClient.Configuration
    ) async throws(WebSocketError) -> [SocketCall.Address] {
        let pending = Pending<HostResolver.Found?>()
        resolver.addresses(of: endpoint.peer) { pending.finish($0) }
        // A lookup cannot be interrupted: after the deadline its result is ignored.
        let found = await until(deadline, by: clock) { await pending.value(ifCancelled: nil) }
        guard let found else {
            throw WebSocketError(.timedOut, "The host was not found within \(configuration.openTimeout).")
        }
        switch found {
        case .success(let addresses)?: return addresses
        case .failure(let failure)?: throw WebSocketError(.unreachable, endpoint.explained(failure))
        case nil: throw WebSocketError(.cancelled, "The task that connects was cancelled.")
        }
    }

    /// Connects to one of the addresses.
    private func descriptor(
        of endpoint: Endpoint,
        _ addresses: [SocketCall.Address],
        _ deadline: MonotonicTime
    ) async throws(WebSocketError) -> Int32 {
        let pending = Pending<SocketConnector.Outcome?>()
        let host = endpoint.peer.host
        let connector = SocketConnector(addresses, host: host, deadline: deadline, clock: clock, loop: loop) {
            // A cancelled task does not take it.
            if !pending.finish($0), case .success(let descriptor) = $0 { SocketCall.shut(descriptor) }
        }
        guard connector.start() else { throw WebSocketError(.unreachable, "No file descriptor is left.") }
        switch await pending.value(ifCancelled: nil, cleanUp: { connector.cancel() }) {
        case .success(let descriptor)?: return descriptor
        case .failure(let failure)?:
            throw WebSocketError(clock.uptime < deadline ? .unreachable : .timedOut, endpoint.explained(failure))
        case nil: throw WebSocketError(.cancelled, "The task that connects was cancelled.")
        }
    }
}

/// Ends the channel when its last user is released.
private final class SocketWebSocket: WebSocketConnection {
    private let channel: SocketWebSocketChannel

    let subprotocol: String?
    let fields: Fields

    init(_ channel: SocketWebSocketChannel) {
        self.channel = channel
        (subprotocol, fields) = channel.state.withLock { ($0.subprotocol, $0.fields) }
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
