import LarderCoding
import LarderHTTP
import LarderWebSocket

/// The client's side of the opening handshake (RFC 6455 §4.1): what to send, and reading what comes back.
///
/// A value without I/O: bytes go in, cut anywhere, and what lies behind the head is given back.
struct WebSocketUpgrade: Sendable {
    /// What has become of the handshake.
    enum Outcome: Sendable {
        /// More bytes are needed.
        case pending
        /// Agreed; `rest` belongs to the WebSocket already.
        case accepted(subprotocol: String?, fields: Fields, rest: [UInt8])
        case failed(WebSocketError)
    }

    static let headBytesMaximum = 16 << 10
    static let bodyBytesMaximum = 64 << 10

    private let key: String
    private let subprotocols: [String]
    private var bytes: [UInt8] = []
    private var searched = 0
    private var refusal: (status: Status, fields: Fields, length: Int?)?

    /// - Parameter key: 16 random bytes.
    init(key: [UInt8], subprotocols: [String]) {
        self.key = Base64.encode(key)
        self.subprotocols = subprotocols
    }

    /// The request that begins it.
    func request(target: String, authority: String, fields: Fields) -> [UInt8] {
        var head = "GET \(target) HTTP/1.1\r\nHost: \(authority)\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        head += "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: \(key)\r\n"
        if !subprotocols.isEmpty { head += "Sec-WebSocket-Protocol: \(subprotocols.joined(separator: ", "))\r\n" }
        for field in fields where !Self.isOurs(field.name) { head += "\(field.name): \(field.value)\r\n" }
        return Array((head + "\r\n").utf8)
    }

    private static func isOurs(_ name: FieldName) -> Bool {
        switch name.canonical {
        case "host", "upgrade", "connection", "content-length", "transfer-encoding": true
        default: name.canonical.hasPrefix("sec-websocket-")
        }
    }

    /// Reads bytes as they came.
    mutating func receive(_ more: Span<UInt8>) -> Outcome {
        unsafe more.withUnsafeBufferPointer { unsafe bytes.append(contentsOf: $0) }
        if refusal != nil { return refused(isAtEnd: false) }
        guard let end = headEnd() else {
            guard bytes.count <= Self.headBytesMaximum else {
                return .failed(WebSocketError(.handshake, "The reply's head is larger than 16 KiB."))
            }
            return .pending
        }
        guard let (status, fields) = Self.head(bytes[..<(end - 4)]) else {
            return .failed(WebSocketError(.handshake, "The reply is not HTTP/1.1."))
        }
        bytes.removeFirst(end)
        // An interim reply (RFC 9110 §15.2) comes before the one that counts.
        if status.code < 200, status != .switchingProtocols {
            searched = 0
            return receive([UInt8]().span)
        }
        guard status == .switchingProtocols else {
            refusal = (status, fields, fields[.contentLength].flatMap { Int($0) })
            return refused(isAtEnd: false)
        }
        return agreed(fields)
    }

    /// The connection has ended, or the time is over: what has come is all there is.
    mutating func end() -> WebSocketError? {
        if case .failed(let error) = refused(isAtEnd: true) { error } else { nil }
    }

    private mutating func headEnd() -> Int? {
        var index = max(searched, 3)
        while index < bytes.count {
            if bytes[index] == 10, bytes[index - 1] == 13, bytes[index - 2] == 10, bytes[index - 3] == 13 {
                return index + 1
            }
            index += 1
        }
        searched = max(0, bytes.count)
        return nil
    }

    private static func head(_ bytes: ArraySlice<UInt8>) -> (Status, Fields)? {
        guard let text = String(validating: bytes, as: UTF8.self) else { return nil }
        var lines = text.split(separator: "\r\n", omittingEmptySubsequences: false)[...]
        let statusLine = lines.removeFirst().split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
        guard statusLine.count >= 2, statusLine[0] == "HTTP/1.1", statusLine[1].utf8.count == 3,
            let code = Int(statusLine[1]), code >= 100
        else { return nil }
        var fields = Fields()
        for line in lines {
            guard let colon = line.firstIndex(of: ":"), let name = FieldName(String(line[..<colon])) else { return nil }
            fields.add(name, trimmed(line[line.index(after: colon)...]))
        }
        return (Status(code: code), fields)
    }

    private static func trimmed(_ text: Substring) -> String {
        var text = text.drop { $0 == " " || $0 == "\t" }
        while text.last == " " || text.last == "\t" { text.removeLast() }
        return String(text)
    }

    private func agreed(_ fields: Fields) -> Outcome {
        func fail(_ reason: String) -> Outcome { .failed(WebSocketError(.handshake, reason)) }
        func list(_ name: FieldName) -> [String] {
            (fields.combined(name) ?? "").lowercased().split(separator: ",").map { Self.trimmed($0) }
        }
        guard list(.upgrade) == ["websocket"], list(.connection).contains("upgrade") else {
            return fail("The reply agrees to another protocol than WebSocket.")
        }
        guard fields.values(of: .secWebSocketAccept) == [WebSocketHandshake.accept(forKey: key)] else {
            return fail("Sec-WebSocket-Accept does not answer the key: a cache, or no WebSocket server, has replied.")
        }
        guard !fields.contains(where: { $0.name.canonical == "sec-websocket-extensions" }) else {
            return fail("The server uses an extension that was not offered.")
        }
        let chosen = fields.values(of: .secWebSocketProtocol)
        guard chosen.count <= 1, chosen.allSatisfy({ subprotocols.contains($0) }) else {
            return fail("The server speaks «\(chosen.joined(separator: ", "))», which was not offered.")
        }
        return .accepted(subprotocol: chosen.first, fields: fields, rest: bytes)
    }

    /// Gathers the refusal's content as far as it goes.
    private func refused(isAtEnd: Bool) -> Outcome {
        guard let refusal else { return .pending }
        let isChunked = refusal.fields.combined(.transferEncoding)?.lowercased().hasSuffix("chunked") ?? false
        let chunks = isChunked ? Self.dechunked(bytes) : (bytes: bytes, isWhole: false)
        let content = chunks.bytes
        let isWhole =
            refusal.status.hasNoContent || chunks.isWhole || content.count >= refusal.length ?? .max
            || content.count >= Self.bodyBytesMaximum
        guard isWhole || isAtEnd else { return .pending }
        return .failed(
            WebSocketError(
                .refused,
                "The server answered with \(refusal.status.code) instead of a WebSocket.",
                status: refusal.status,
                fields: refusal.fields,
                body: Array(content.prefix(min(max(0, refusal.length ?? .max), Self.bodyBytesMaximum)))
            )
        )
    }

    /// The content of chunks as far as it has come.
    private static func dechunked(_ bytes: [UInt8]) -> (bytes: [UInt8], isWhole: Bool) {
        var chunks = ReplyChunks(ReplyReader.Limits())
        var content: [UInt8] = []
        // What is no chunk ends it: the refusal counts, whatever becomes of its content.
        do { _ = try chunks.read(bytes.span, from: 0, into: &content) } catch { return (content, true) }
        return (content, chunks.isOver)
    }
}
