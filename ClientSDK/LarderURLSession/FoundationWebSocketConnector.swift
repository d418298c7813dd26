import Foundation
import LarderEvents
import LarderHTTP
public import LarderTime
public import LarderTransport

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Opens `ws` and `wss` WebSockets with `URLSessionWebSocketTask`.
///
/// Foundation performs the handshake and returns no content of a rejection. On Linux it requires a libcurl with
/// WebSocket support (7.86 or later); otherwise connecting fails. Safe from any task.
public struct FoundationWebSocketConnector: WebSocketConnector {
    private let clock: any MonotonicClock & Sleeper

    /// - Parameter clock: measures silence and timeouts.
    public init(clock: any MonotonicClock & Sleeper = SystemMonotonicClock()) { self.clock = clock }

    /// Connects and performs the handshake.
    public func connect(
        _ request: WebSocketClient.Request,
        _ configuration: WebSocketClient.Configuration
    ) async throws(WebSocketError) -> any WebSocketConnection {
        _ = try request.checkedURL()
        guard let url = URL(string: request.url) else {
            throw WebSocketError(.invalidRequest, "'\(HTTPURL.redacted(request.url))' is not a URL.")
        }
        var foreign = URLRequest(url: url)
        for field in request.fields { foreign.addValue(field.value, forHTTPHeaderField: field.name.description) }
        if !request.subprotocols.isEmpty {
            foreign.setValue(request.subprotocols.joined(separator: ", "), forHTTPHeaderField: "Sec-WebSocket-Protocol")
        }
        let socket = FoundationWebSocket(foreign, configuration, clock)
        let opened = await until(clock.uptime + configuration.openTimeout, by: clock) { await socket.open() }
        guard let opened else {
            socket.cut()
            throw WebSocketError(.timedOut, "The WebSocket was not open within \(configuration.openTimeout).")
        }
        try opened.get()
        return socket
    }
}
