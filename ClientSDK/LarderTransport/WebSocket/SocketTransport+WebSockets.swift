import LarderTime

extension SocketTransport {
    /// A WebSocket client with the TLS settings, the proxies and the clocks of this transport.
    ///
    /// - Parameter configuration: its limits and timeouts.
    public func webSockets(
        _ configuration: WebSocketClient.Configuration = WebSocketClient.Configuration()
    ) -> WebSocketClient {
        webSockets(configuration, random: SystemRandomNumberGenerator())
    }

    /// - Parameter random: the source of masks and keys. Must be unpredictable (RFC 6455 §10.3).
    package func webSockets(
        _ configuration: WebSocketClient.Configuration = WebSocketClient.Configuration(),
        random: any RandomNumberGenerator & Sendable
    ) -> WebSocketClient {
        WebSocketClient(
            configuration,
            connector: SocketWebSocketConnector(transport: self, random: SharedRandom(random))
        )
    }
}
