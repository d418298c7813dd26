import LarderCoding
import LarderHTTP
import LarderHTTPWire

/// The client's side of the opening handshake (RFC 6455 §4.1).
///
/// A value without I/O.
struct WebSocketUpgrade: Sendable {
    private let key: String
    private let subprotocols: [String]

    /// - Parameter key: 16 random bytes.
    init(key: [UInt8], subprotocols: [String]) {
        self.key = Base64.encode(key)
        self.subprotocols = subprotocols
    }

    /// Serialises the request.
    func request(target: String, authority: String, fields: Fields) -> [UInt8] {
        var head = "GET \(target) HTTP/1.1\r\nHost: \(authority)\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        head += "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: \(key)\r\n"
        if !subprotocols.isEmpty { head += "Sec-WebSocket-Protocol: \(subprotocols.joined(separator: ", "))\r\n" }
        for field in fields where !Self.isReserved(field.name) { head += "\(field.name): \(field.value)\r\n" }
        return Array((head + "\r\n").utf8)
    }

    private static func isReserved(_ name: FieldName) -> Bool {
        SocketRequest.isReserved(name) || name.canonical.hasPrefix("sec-websocket-")
    }

    /// Checks the head of a 101 response.
    ///
    /// - Returns: the negotiated subprotocol.
    func agreed(_ head: ResponseHead) throws(WebSocketError) -> String? {
        func fail(_ reason: String) -> WebSocketError { WebSocketError(.handshake, reason) }
        let fields = head.fields
        guard head.minorVersion == 1 else { throw fail("The response is not HTTP/1.1.") }
        func list(_ name: FieldName) -> [String] {
            fields.values(of: name).flatMap(FieldList.members).map { $0.lowercased() }
        }
        guard list(.upgrade) == ["websocket"], list(.connection).contains("upgrade") else {
            throw fail("The response switches to another protocol than WebSocket.")
        }
        guard fields.values(of: .secWebSocketAccept) == [WebSocketHandshake.accept(forKey: key)] else {
            throw fail("Sec-WebSocket-Accept does not match the key: the response is not from a WebSocket server.")
        }
        guard !fields.contains(where: { $0.name.canonical == "sec-websocket-extensions" }) else {
            throw fail("The server uses an extension that was not offered.")
        }
        let chosen = fields.values(of: .secWebSocketProtocol)
        guard chosen.count <= 1, chosen.allSatisfy({ subprotocols.contains($0) }) else {
            throw fail("The server chose the subprotocol '\(chosen.joined(separator: ", "))', which was not offered.")
        }
        return chosen.first
    }
}
