import LarderHTTP
public import LarderTime
import LarderWebSocket
import Synchronization

/// Opens `ws://` WebSockets on sockets of its own, which one thread of the process waits for.
///
/// Addresses of a host are tried one after another. For `wss://` see `FoundationWebSocketConnector`. Safe from any task.
public struct SocketWebSocketConnector: WebSocketConnector {
    private let clock: any MonotonicClock & Sleeper
    private let random: SharedRandom
    private let resolver: HostResolver

    /// - Parameters:
    ///   - clock: measures silence and timeouts.
    ///   - random: where masks and keys come from; unforeseeable, outside of tests.
    public init(
        clock: any MonotonicClock & Sleeper = SystemMonotonicClock(),
        random: any RandomNumberGenerator & Sendable = SystemRandomNumberGenerator()
    ) {
        self.init(clock: clock, random: random, resolver: .shared)
    }

    init(
        clock: any MonotonicClock & Sleeper,
        random: any RandomNumberGenerator & Sendable,
        resolver: HostResolver
    ) {
        self.clock = clock
        self.random = SharedRandom(random)
        self.resolver = resolver
    }

    /// Connects and agrees.
    public func connect(
        _ request: WebSocketRequest,
        _ configuration: WebSocketConfiguration
    ) async throws(WebSocketError) -> any WebSocketConnection {
        let target = try WebSocketTarget(request.url)
        guard !target.isSecure else {
            throw WebSocketError(.invalidRequest, "These sockets know no TLS: connect to ws://, or by Foundation.")
        }
        try WebSocketTarget.check(request.subprotocols)
        if Task.isCancelled { throw WebSocketError(.cancelled, "The task that connects was cancelled.") }
        let deadline = clock.uptime + configuration.openTimeout
        var failure = WebSocketError(.unreachable, "«\(target.host)» has no address.")
        let addresses = try await addresses(target, deadline, configuration)
        for (index, address) in addresses.enumerated() {
            let now = clock.uptime
            let upgrade = WebSocketUpgrade(key: random.bytes(16), subprotocols: request.subprotocols)
            let channel = SocketWebSocketChannel(
                configuration,
                upgrade,
                request: upgrade.request(target: target.path, authority: target.authority, fields: request.fields),
                // One that does not answer leaves the others their share of the time.
                connectDeadline: now + max(.zero, deadline - now) / (addresses.count - index),
                deadline: deadline,
                clock: clock,
                random: random
            )
            do throws(WebSocketError) {
                try await channel.open(address)
                return SocketWebSocket(channel)
            } catch {
                let isLate = error.code == .timedOut && clock.uptime < deadline
                guard error.code == .unreachable || isLate else { throw error }
                failure = error
            }
        }
        throw failure
    }

    private func addresses(
        _ target: WebSocketTarget,
        _ deadline: MonotonicTime,
        _ configuration: WebSocketConfiguration
    ) async throws(WebSocketError) -> [SocketCall.Address] {
        let pending = Pending<HostResolver.Found>()
        resolver.addresses(of: SocketTarget.Origin(host: target.host, port: target.port)) { pending.finish($0) }
        // Whoever waits may leave the resolver behind.
        let found = await until(deadline, by: clock) {
            await pending.value(ifCancelled: .failure(TransportError(.cancelled, "The task was cancelled.")))
        }
        guard let found else {
            throw WebSocketError(.timedOut, "It took longer than \(configuration.openTimeout) to find the host.")
        }
        do { return try found.get() } catch {
            throw WebSocketError(error.code == .cancelled ? .cancelled : .unreachable, error.description)
        }
    }
}

/// Holds a channel for those who use it: when the last of them goes, the connection is cut.
private final class SocketWebSocket: WebSocketConnection {
    private let channel: SocketWebSocketChannel

    let subprotocol: String?
    let fields: Fields

    init(_ channel: SocketWebSocketChannel) {
        self.channel = channel
        (subprotocol, fields) = channel.state.withLock { ($0.subprotocol, $0.fields) }
    }

    deinit { cut() }

    var closing: WebSocketClose? { channel.state.withLock { $0.closing } }

    func receive() async throws(WebSocketError) -> WebSocketMessage? { try await channel.receive() }

    func send(_ message: WebSocketMessage) async throws(WebSocketError) {
        switch message {
        case .text(let text): try await channel.send(.text, Array(text.utf8))
        case .binary(let bytes): try await channel.send(.binary, bytes)
        }
    }

    func ping() async throws(WebSocketError) { try await channel.ping() }

    func close(_ close: WebSocketClose) async -> WebSocketClose? { await channel.close(close) }

    func cut() { channel.cut(WebSocketError(.cancelled, "The WebSocket was cut.")) }
}
