import LarderHTTP
import LarderTime
import LarderTransport
import SDKTestSupport
import Testing

/// A client connected to a scripted server.
struct WebSocketPair {
    let server: WireServer
    let peer: WirePeer
    let socket: any WebSocketConnection
    let head: String

    /// - Parameters:
    ///   - rest: bytes that the server sends in one piece with the 101 response.
    ///   - receiveBufferBytes: the size of the server's receive buffer.
    static func connect(
        _ configuration: WebSocketClient.Configuration = WebSocketClient.Configuration(),
        clock: any MonotonicClock = ManualClock(),
        seed: UInt64 = 1,
        rest: [UInt8] = [],
        lines: String = "",
        subprotocols: [String] = [],
        receiveBufferBytes: Int32? = nil
    ) async throws -> WebSocketPair {
        let server = try WireServer(receiveBufferBytes: receiveBufferBytes)
        let client = SocketTransport(clock: clock).webSockets(configuration, random: SeededGenerator(seed: seed))
        let url = "ws://127.0.0.1:\(server.port)/live?a=b%20c"
        async let connecting = client.connect(
            url,
            fields: [.authorization: "Bearer t", .host: "evil", .secWebSocketKey: "x"],
            subprotocols: subprotocols
        )
        let peer = try await server.accept()
        let head = try await peer.acceptWebSocket(lines: lines, rest: rest)
        return WebSocketPair(server: server, peer: peer, socket: try await connecting, head: head)
    }
}

/// The error of a call; nil if it succeeds.
func failure(_ body: () async throws(WebSocketError) -> Void) async -> WebSocketError? {
    do throws(WebSocketError) {
        try await body()
        return nil
    } catch { return error }
}

func text(_ text: String) -> [UInt8] { WirePeer.frame(1, Array(text.utf8)) }
