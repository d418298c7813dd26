import Foundation
public import Larder
import LarderHTTP
public import LarderTime

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Opens WebSockets by Foundation's `URLSessionWebSocketTask`, `wss://` among them.
///
/// Foundation checks the handshake and masks by itself, gives no content of a refusal, and on Linux works only where its libcurl
/// speaks WebSocket (version 7.86 and later, if it was built so); elsewhere connecting fails. Safe from any task.
public struct FoundationWebSocketConnector: WebSocketConnector {
    private let clock: any MonotonicClock & Sleeper

    /// - Parameter clock: measures silence and timeouts.
    public init(clock: any MonotonicClock & Sleeper = SystemMonotonicClock()) { self.clock = clock }

    /// Connects and agrees.
    public func connect(
        _ request: WebSocketRequest,
        _ configuration: WebSocketConfiguration
    ) async throws(WebSocketError) -> any WebSocketConnection {
        _ = try WebSocketTarget(request.url)
        try WebSocketTarget.check(request.subprotocols)
        guard let url = URL(string: request.url) else {
            throw WebSocketError(.invalidRequest, "«\(ShownURL.text(request.url))» is no URL.")
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
            throw WebSocketError(.timedOut, "It took longer than \(configuration.openTimeout) to open.")
        }
        try opened.get()
        return socket
    }
}
