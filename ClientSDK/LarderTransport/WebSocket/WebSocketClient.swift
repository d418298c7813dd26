public import LarderHTTP
public import LarderTime

/// Opens WebSockets (RFC 6455): `ws` over POSIX sockets, `wss` over a connector with TLS
/// (`FoundationWebSocketConnector` in LarderURLSession, or another).
///
///     let socket = try await client.connect("ws://127.0.0.1:8080/v1/live", subprotocols: ["larder.live.v1"])
///     for try await message in socket.messages { … }
///
/// The client does not reconnect. Safe from any task.
public struct WebSocketClient: Sendable {
    private let configuration: WebSocketClient.Configuration
    private let plain: any WebSocketConnector
    private let secure: (any WebSocketConnector)?

    /// Creates a client.
    ///
    /// - Parameters:
    ///   - configuration: limits and timeouts.
    ///   - secure: connects to `wss` URLs; nil: they are rejected.
    ///   - clock: used for timeouts and pings.
    ///   - random: the source of masks and keys. Must be unpredictable (RFC 6455 §10.3).
    public init(
        _ configuration: WebSocketClient.Configuration = WebSocketClient.Configuration(),
        secure: (any WebSocketConnector)? = nil,
        clock: any MonotonicClock & Sleeper = SystemMonotonicClock(),
        random: any RandomNumberGenerator & Sendable = SystemRandomNumberGenerator()
    ) {
        self.configuration = configuration
        plain = SocketWebSocketConnector(clock: clock, random: random)
        self.secure = secure
    }

    /// Creates a client that uses one connector for all URLs.
    public init(
        _ configuration: WebSocketClient.Configuration = WebSocketClient.Configuration(),
        connector: any WebSocketConnector
    ) {
        self.configuration = configuration
        plain = connector
        secure = connector
    }

    private init(
        _ configuration: WebSocketClient.Configuration,
        plain: any WebSocketConnector,
        secure: (any WebSocketConnector)?
    ) {
        self.configuration = configuration
        self.plain = plain
        self.secure = secure
    }

    /// The same client with other connectors.
    func wrapped(_ wrap: (any WebSocketConnector) -> any WebSocketConnector) -> WebSocketClient {
        WebSocketClient(configuration, plain: wrap(plain), secure: secure.map(wrap))
    }

    /// Connects and performs the handshake.
    ///
    /// - Parameters:
    ///   - url: an absolute `ws` or `wss` URL.
    ///   - fields: additional fields, such as `Authorization`.
    ///   - subprotocols: the offered subprotocols, in order of preference.
    /// - Throws: `.rejected` with status and content if the response is not 101, or another code.
    public func connect(
        _ url: String,
        fields: Fields = Fields(),
        subprotocols: [String] = []
    ) async throws(WebSocketError) -> any WebSocketConnection {
        let request = WebSocketClient.Request(url: url, fields: fields, subprotocols: subprotocols)
        guard url.lowercased().hasPrefix("wss:") else { return try await plain.connect(request, configuration) }
        guard let secure else {
            throw WebSocketError(
                .invalidRequest,
                "'\(HTTPURL.redacted(url))' needs TLS. Pass a connector with TLS: FoundationWebSocketConnector of LarderURLSession."
            )
        }
        return try await secure.connect(request, configuration)
    }
}
