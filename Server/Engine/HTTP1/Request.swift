package import LarderHTTP
import LarderWebSocket

/// A complete request.
package struct Request: Sendable {
    package let method: Method
    package let fields: RequestFields
    package var body: [UInt8] = []
    /// 0 or 1: the minor version of HTTP/1.
    package let minorVersion: Int
    /// The number of the connection in this server, from 1.
    package internal(set) var connection: UInt64 = 0
    /// The number of the exchange on its connection, from 1.
    package internal(set) var exchangeIndex: Int = 0
    package internal(set) var peer = SocketAddress(host: "", port: 0)
    /// Whether the handler was told of the head before the body was read.
    package internal(set) var wasAnnounced = false
    /// How many bytes of the path were taken off with `droppingPathPrefix`.
    package internal(set) var droppedPrefixCount = 0
    var target: Range<Int>
    let pathEnd: Int

    /// The head as it came, without the empty line.
    package var head: [UInt8] { fields.head }

    /// Path and query, in origin form whatever form was sent; `*` for `OPTIONS *`.
    package var targetBytes: ArraySlice<UInt8> { fields.head[target] }

    package var targetText: String { String(decoding: targetBytes, as: UTF8.self) }

    /// The path, not decoded.
    package var path: ArraySlice<UInt8> { fields.head[target.lowerBound..<pathEnd] }

    package var pathText: String { String(decoding: path, as: UTF8.self) }

    /// What stands after the `?`; nil where there is none.
    package var query: ArraySlice<UInt8>? {
        pathEnd < target.upperBound ? fields.head[(pathEnd + 1)..<target.upperBound] : nil
    }

    /// Lends the target's bytes to a function, without a copy.
    package func withTarget<Result>(_ body: (Span<UInt8>) -> Result) -> Result {
        body(fields.head.span.extracting(target))
    }

    /// Whether the request asks for a WebSocket (RFC 6455 §4.1).
    package var isWebSocketUpgrade: Bool { WebSocketHandshake.isUpgrade(handshakeField) }

    /// The sub-protocols that a WebSocket client offers.
    package var offeredSubprotocols: [String] {
        (fields.combined(.secWebSocketProtocol) ?? "").split(separator: ",").map {
            $0.filter { $0 != " " && $0 != "\t" }
        }
    }

    func handshakeField(_ name: StaticString) -> String? { FieldName(name.description).flatMap { fields.combined($0) } }
}

extension Request {
    /// The same request on the rest of its path, behind a prefix of that many bytes.
    package func droppingPathPrefix(_ count: Int) -> Request {
        guard count > 0 else { return self }
        var request = self
        request.target = (target.lowerBound + count)..<target.upperBound
        request.droppedPrefixCount += count
        return request
    }

    /// A request that did not come over the network.
    ///
    /// - Throws: when the parts do not make a request, such as a line break in a field.
    package init(
        _ method: Method,
        _ target: String,
        _ fields: [(name: String, value: String)],
        body: [UInt8] = [],
        connection: UInt64 = 0,
        exchangeIndex: Int = 1
    ) throws(Refusal) {
        var head = "\(method.rawValue) \(target) HTTP/1.1"
        for field in fields { head += "\r\n\(field.name): \(field.value)" }
        self = try HeadParser.parse(Array(head.utf8))
        self.body = body
        self.connection = connection
        self.exchangeIndex = exchangeIndex
    }

    /// A request again from its head's bytes, as `head` gave them.
    package init(head: [UInt8], body: [UInt8], exchangeIndex: Int) throws(Refusal) {
        self = try HeadParser.parse(head)
        self.body = body
        self.exchangeIndex = exchangeIndex
    }

    /// The request without the fields of these names.
    package func removing(_ names: [FieldName]) -> Request {
        let kept = fields.all.filter { field in !names.contains { $0 == FieldName(field.name) } }
        guard kept.count < fields.all.count,
            var request = try? Request(method, targetText, kept, body: body)
        else { return self }
        request.connection = connection
        request.exchangeIndex = exchangeIndex
        request.peer = peer
        request.wasAnnounced = wasAnnounced
        return request
    }
}
