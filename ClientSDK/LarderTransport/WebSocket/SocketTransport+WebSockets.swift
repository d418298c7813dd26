import LarderTime

extension SocketTransport {
    /// A WebSocket client with the TLS settings, the proxies and the clocks of this transport.
    ///
    /// - Parameter configuration: its limits and timeouts.
    public func webSockets(
        _ configuration: WebSocketClient.Configuration = WebSocketClient.Configuration()
    ) -> WebSocketClient {
        let random = SharedRandom(SystemRandomNumberGenerator())
        return WebSocketClient(configuration, connector: SocketWebSocketConnector(transport: self, random: random))
    }
}
