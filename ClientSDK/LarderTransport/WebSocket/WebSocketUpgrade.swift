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

    static let headBytesMaximum = 16 << 10
    static let bodyBytesMaximum = 64 << 10

    /// A final response that is no 101, and the part of its content that was received.
    private struct Rejection: Sendable {
        let head: ResponseHead
        /// nil: the framing is invalid. The content is what follows the head.
        let framing: BodyFraming?
        var content: [UInt8] = []
        private var chunks = ChunkedDecoder(.response)
        private var isInvalid = false

        init(_ head: ResponseHead) {
            self.head = head
            framing = try? BodyFraming(head, isHead: false)
        }

        var isWhole: Bool {
            switch framing {
            case BodyFraming.none?: true
            case .length(let length)?: content.count >= length
            case .chunked?: chunks.isDone || isInvalid
            case .untilClose?, nil: false
            }
        }

        mutating func receive(_ bytes: Span<UInt8>) {
            guard case .chunked? = framing else {
                unsafe bytes.withUnsafeBufferPointer { unsafe content.append(contentsOf: $0) }
                return
            }
            // Invalid chunks end the content.
            do throws(HTTPWireError) { _ = try chunks.decode(bytes, from: 0, into: &content) } catch {
                isInvalid = true
            }
        }
    }

    private let key: String
    private let subprotocols: [String]
    private var bytes: [UInt8] = []
    private var scanner = HeadScanner(skipsEmptyLines: false)
    private var rejection: Rejection?
    private var interimCount = 0
    private static let interimMaximum = 16

    /// - Parameter key: 16 random bytes.
    init(key: [UInt8], subprotocols: [String]) {
        self.key = Base64.encode(key)
        self.subprotocols = subprotocols
    }

    /// The number of bytes that are kept, for tests.
    var byteCount: Int { bytes.count + (rejection?.content.count ?? 0) }

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
    mutating func receive(_ more: Span<UInt8>) -> Outcome {
        if rejection != nil {
            rejection?.receive(more)
            return rejected(isAtEnd: false)
        }
        unsafe more.withUnsafeBufferPointer { unsafe bytes.append(contentsOf: $0) }
        var scanner = scanner
        let outcome = scanner.scan(bytes.span)
        self.scanner = scanner
        switch outcome {
        case .incomplete:
            guard bytes.count <= Self.headBytesMaximum else {
                return .failed(
                    WebSocketError(.handshake, "The response's head has more than \(Self.headBytesMaximum) bytes.")
                )
            }
            return .pending
        case .malformed(let what): return .failed(WebSocketError(.handshake, "The response's head has \(what)."))
        case .head(let range):
            let head: ResponseHead
            do throws(HTTPWireError) {
                head = try ResponseHead(Array(bytes[range]))
            } catch { return .failed(WebSocketError(.handshake, error.detail)) }
            bytes.removeFirst(scanner.scanned)
            self.scanner = HeadScanner(skipsEmptyLines: false)
            if head.status == .switchingProtocols {
                guard head.minorVersion == 1 else {
                    return .failed(WebSocketError(.handshake, "The response is not HTTP/1.1."))
                }
                return agreed(head.fields)
            }
            // Interim responses (RFC 9110 §15.2) precede the final one.
            if head.status.code < 200 {
                interimCount += 1
                guard interimCount <= Self.interimMaximum else {
                    return .failed(
                        WebSocketError(.handshake, "More than \(Self.interimMaximum) interim responses came.")
                    )
                }
                return receive([UInt8]().span)
            }
            rejection = Rejection(head)
            let content = bytes
            bytes = []
            return receive(content.span)
        }
    }

    /// Handles the end of the connection or a timeout: returns the rejection with the content so far, if there is one.
    func end() -> WebSocketError? {
        if case .failed(let error) = rejected(isAtEnd: true) { error } else { nil }
    }

    private func agreed(_ fields: Fields) -> Outcome {
        func fail(_ reason: String) -> Outcome { .failed(WebSocketError(.handshake, reason)) }
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
        return .accepted(subprotocol: chosen.first, fields: fields, rest: bytes)
    }

    /// Returns the rejection when its content is complete or too large.
    private func rejected(isAtEnd: Bool) -> Outcome {
        guard let rejection,
            rejection.isWhole || isAtEnd || rejection.content.count >= Self.bodyBytesMaximum
        else { return .pending }
        let head = rejection.head
        var length = Self.bodyBytesMaximum
        if let stated = head.fields[.contentLength].flatMap({ Int($0) }) { length = min(length, max(0, stated)) }
        return .failed(
            WebSocketError(
                .rejected,
                "The server answered with \(head.status.code) instead of a WebSocket.",
                status: head.status,
                fields: head.fields,
                body: Array(rejection.content.prefix(length))
            )
        )
    }
}
