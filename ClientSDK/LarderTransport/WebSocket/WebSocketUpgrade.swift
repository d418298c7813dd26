import LarderCoding
import LarderHTTP
import LarderHTTPWire

/// The client's side of the opening handshake (RFC 6455 §4.1).
///
/// A value without I/O. Bytes may come in any pieces; those after the head are returned.
struct WebSocketUpgrade: Sendable {
    /// The state of the handshake.
    enum Outcome: Sendable {
        /// More bytes are needed.
        case pending
        /// The handshake succeeded. `rest` belongs to the WebSocket.
        case accepted(subprotocol: String?, fields: Fields, rest: [UInt8])
        case failed(WebSocketError)
    }

    private static let bodyBytesMaximum = 64 << 10

    private let key: String
    private let subprotocols: [String]
    private var reader = ResponseReader(.upgrade)
    private var head: ResponseHead?
    /// What was received of the content of a response that is no 101.
    private var content: [UInt8] = []

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
        switch name.canonical {
        case "host", "upgrade", "connection", "content-length", "transfer-encoding": true
        default: name.canonical.hasPrefix("sec-websocket-")
        }
    }

    /// Reads received bytes.
    mutating func receive(_ bytes: Span<UInt8>) -> Outcome {
        var events: [ResponseReader.Event] = []
        var (count, failure) = (0, ResponseReader.Failure?.none)
        do throws(ResponseReader.Failure) { count = try reader.receive(bytes, &events) } catch { failure = error }
        for event in events {
            switch event {
            case .head(let head): self.head = head
            case .content(let piece): content += piece
            case .end: break
            }
        }
        guard let head else {
            return failure.map { .failed(WebSocketError(.handshake, $0.description)) } ?? .pending
        }
        if head.status == .switchingProtocols {
            var rest: [UInt8] = []
            unsafe bytes.extracting(count...).withUnsafeBufferPointer { unsafe rest.append(contentsOf: $0) }
            return agreed(head, rest)
        }
        // Invalid chunks end the content.
        guard reader.isComplete || failure != nil || content.count >= Self.bodyBytesMaximum else { return .pending }
        return .failed(rejection(head))
    }

    /// Handles the end of the connection or a timeout: returns the rejection with the content so far, if there is one.
    func end() -> WebSocketError? { head.map(rejection) }

    private func agreed(_ head: ResponseHead, _ rest: [UInt8]) -> Outcome {
        func fail(_ reason: String) -> Outcome { .failed(WebSocketError(.handshake, reason)) }
        let fields = head.fields
        guard head.minorVersion == 1 else { return fail("The response is not HTTP/1.1.") }
        func list(_ name: FieldName) -> [String] {
            fields.values(of: name).flatMap(FieldList.members).map { $0.lowercased() }
        }
        guard list(.upgrade) == ["websocket"], list(.connection).contains("upgrade") else {
            return fail("The response switches to another protocol than WebSocket.")
        }
        guard fields.values(of: .secWebSocketAccept) == [WebSocketHandshake.accept(forKey: key)] else {
            return fail("Sec-WebSocket-Accept does not match the key: the response is not from a WebSocket server.")
        }
        guard !fields.contains(where: { $0.name.canonical == "sec-websocket-extensions" }) else {
            return fail("The server uses an extension that was not offered.")
        }
        let chosen = fields.values(of: .secWebSocketProtocol)
        guard chosen.count <= 1, chosen.allSatisfy({ subprotocols.contains($0) }) else {
            return fail("The server chose the subprotocol '\(chosen.joined(separator: ", "))', which was not offered.")
        }
        return .accepted(subprotocol: chosen.first, fields: fields, rest: rest)
    }

    private func rejection(_ head: ResponseHead) -> WebSocketError {
        WebSocketError(
            .rejected,
            "The server answered with \(head.status.code) instead of a WebSocket.",
            status: head.status,
            fields: head.fields,
            body: Array(content.prefix(Self.bodyBytesMaximum))
        )
    }
}
