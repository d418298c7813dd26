extension SocketTransport {
    /// A WebSocket client with the TLS settings, the proxies and the clocks of this transport.
    ///
    /// - Parameter configuration: its limits and timeouts.
    public func webSockets(
        _ configuration: WebSocketClient.Configuration = WebSocketClient.Configuration()
    ) -> WebSocketClient {
        let connector = SocketWebSocketConnector(
            clock: clock,
            random: SystemRandomNumberGenerator(),
            tls: tls,
            proxies: self.configuration.proxies,
            wallClock: pool.wallClock,
            resolver: pool.resolver,
            loop: pool.loop
        )
        return WebSocketClient(configuration, connector: connector)
    }
}
