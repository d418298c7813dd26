public import LarderHTTP
public import LarderTime

/// Opens WebSockets (RFC 6455): `ws://` over sockets of its own, `wss://` over a connector that has TLS
/// (`FoundationWebSocketConnector` in LarderURLSession, or a user's own).
///
///     let socket = try await client.connect("ws://127.0.0.1:8080/v1/live", subprotocols: ["larder.live.v1"])
///     for try await message in socket.messages { … }
///
/// It does not connect again by itself. Safe from any task.
public struct WebSocketClient: Sendable {
    private let configuration: WebSocketConfiguration
    private let plain: any WebSocketConnector
    private let secure: (any WebSocketConnector)?

    /// A client.
    ///
    /// - Parameters:
    ///   - configuration: limits and habits.
    ///   - secure: connects to `wss://`; nil: such a URL is refused.
    ///   - clock: measures silence and timeouts.
    ///   - random: where masks and keys come from; unforeseeable, outside of tests.
    public init(
        _ configuration: WebSocketConfiguration = WebSocketConfiguration(),
        secure: (any WebSocketConnector)? = nil,
        clock: any MonotonicClock & Sleeper = SystemMonotonicClock(),
        random: any RandomNumberGenerator & Sendable = SystemRandomNumberGenerator()
    ) {
        self.configuration = configuration
        plain = SocketWebSocketConnector(clock: clock, random: random)
        self.secure = secure
    }

    /// A client over another connector, for all URLs.
    public init(
        _ configuration: WebSocketConfiguration = WebSocketConfiguration(),
        connector: any WebSocketConnector
    ) {
        self.configuration = configuration
        plain = connector
        secure = connector
    }

    /// Connects and agrees.
    ///
    /// - Parameters:
    ///   - url: `ws://…` or `wss://…`.
    ///   - fields: what else to say, such as `Authorization`.
    ///   - subprotocols: those that are spoken here, the preferred one first.
    /// - Throws: `.refused` with the status and content of the server's reply, and everything else that can be in the way.
    public func connect(
        _ url: String,
        fields: Fields = Fields(),
        subprotocols: [String] = []
    ) async throws(WebSocketError) -> any WebSocketConnection {
        let request = WebSocketRequest(url: url, fields: fields, subprotocols: subprotocols)
        guard url.lowercased().hasPrefix("wss:") else { return try await plain.connect(request, configuration) }
        guard let secure else {
            throw WebSocketError(
                .invalidRequest,
                "«\(ShownURL.text(url))» needs TLS. Give the client a connector that has it: FoundationWebSocketConnector of LarderURLSession."
            )
        }
        return try await secure.connect(request, configuration)
    }
}
