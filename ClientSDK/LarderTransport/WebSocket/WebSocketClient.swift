public import LarderHTTP

/// Opens WebSockets (RFC 6455) over POSIX sockets: `ws`, and `wss` by the system's OpenSSL.
///
///     let client = SocketTransport(configuration).webSockets()
///     let socket = try await client.connect("wss://example.com/v1/live", subprotocols: ["larder.live.v1"])
///     for try await message in socket.messages { … }
///
/// The client does not reconnect. Safe from any task.
public struct WebSocketClient: Sendable {
    private let configuration: WebSocketClient.Configuration
    private let connector: any WebSocketConnector

    /// Creates a client that uses a connector. `SocketTransport.webSockets` makes one with the settings of a transport.
    package init(
        _ configuration: WebSocketClient.Configuration = WebSocketClient.Configuration(),
        connector: any WebSocketConnector
    ) {
        self.configuration = configuration
        self.connector = connector
    }

    /// The same client with another connector.
    func wrapped(_ wrap: (any WebSocketConnector) -> any WebSocketConnector) -> WebSocketClient {
        WebSocketClient(configuration, connector: wrap(connector))
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
        try await connector.connect(
            WebSocketClient.Request(url: url, fields: fields, subprotocols: subprotocols),
            configuration
        )
    }
}
