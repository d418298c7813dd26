package import LarderHTTP
@_exported public import LarderHTTPWire

/// A complete request.
package struct Request: Sendable {
    package let method: Method
    package private(set) var fields: FieldLines
    package var body: [UInt8] = []
    /// The minor version of HTTP/1: 0 or 1.
    package let minorVersion: Int
    /// The number of the connection in this server, from 1.
    package internal(set) var connection: UInt64 = 0
    /// The number of the exchange on its connection, from 1.
    package internal(set) var exchangeIndex: Int = 0
    package internal(set) var peer = SocketAddress(host: "", port: 0)
    /// Whether it came over TLS.
    package internal(set) var isSecure = false
    /// Whether the handler received the head before the body was read.
    package internal(set) var wasAnnounced = false
    /// Whether the body was not read, or only its beginning (`Exchange.proceed(upTo:)`): the next request cannot be found.
    package internal(set) var isCut = false
    /// How many bytes `droppingPathPrefix` has removed from the path.
    package internal(set) var droppedPrefixCount = 0
    var target: Range<Int>
    let pathEnd: Int

    /// The head as received, without the empty line.
    package var head: [UInt8] { fields.head }

    /// Path and query in origin form, whichever form was received; `*` for `OPTIONS *`.
    package var targetBytes: ArraySlice<UInt8> { fields.head[target] }

    package var targetText: String { String(decoding: targetBytes, as: UTF8.self) }

    /// The bytes that `droppingPathPrefix` has removed from the path.
    package var droppedPrefix: ArraySlice<UInt8> {
        fields.head[(target.lowerBound - droppedPrefixCount)..<target.lowerBound]
    }

    /// The path, percent-encoded.
    package var path: ArraySlice<UInt8> { fields.head[target.lowerBound..<pathEnd] }

    package var pathText: String { String(decoding: path, as: UTF8.self) }

    /// The part after `?`; nil if there is none.
    package var query: ArraySlice<UInt8>? {
        pathEnd < target.upperBound ? fields.head[(pathEnd + 1)..<target.upperBound] : nil
    }

    /// Whether the request is a WebSocket upgrade (RFC 6455 §4.1).
    package var isWebSocketUpgrade: Bool {
        fields.range(of: "upgrade") != nil && WebSocketHandshake.isUpgrade(handshakeField)
    }

    /// The subprotocols that a WebSocket client offers.
    package var offeredSubprotocols: [String] {
        FieldList.members(of: fields.combined(.secWebSocketProtocol) ?? "")
    }

    /// Whether the request lets the connection persist after the exchange (RFC 9112 §9.3).
    package var persists: Bool {
        guard !isCut else { return false }
        guard fields.range(of: "connection") != nil else { return minorVersion == 1 }
        let options = FieldList.members(of: (fields.combined(.connection) ?? "").lowercased())
        return !options.contains("close") && (minorVersion == 1 || options.contains("keep-alive"))
    }

    /// The line that tells the client whether the connection persists; empty if it expects that.
    package func connectionLine(persists: Bool) -> StaticString {
        persists ? minorVersion == 0 ? "Connection: keep-alive\r\n" : "" : "Connection: close\r\n"
    }

    func handshakeField(_ name: StaticString) -> String? { FieldName(name.description).flatMap { fields.combined($0) } }
}

extension Request {
    init(_ head: RequestHead) {
        self.init(
            method: head.method,
            fields: head.fields,
            minorVersion: head.minorVersion,
            target: head.target,
            pathEnd: head.pathEnd
        )
    }

    /// The same request without the first bytes of its path.
    package func droppingPathPrefix(_ count: Int) -> Request {
        guard count > 0 else { return self }
        var request = self
        request.target = (target.lowerBound + count)..<target.upperBound
        request.droppedPrefixCount += count
        return request
    }

    /// Makes a request that was not received over the network.
    ///
    /// - Throws: if the parts do not form a valid request, for example a field with a line break.
    package init(
        _ method: Method,
        _ target: String,
        _ fields: [(name: String, value: String)],
        body: [UInt8] = [],
        connection: UInt64 = 0,
        exchangeIndex: Int = 1
    ) throws(Rejection) {
        var head = "\(method.rawValue) \(target) HTTP/1.1"
        for field in fields { head += "\r\n\(field.name): \(field.value)" }
        try self.init(RequestHead(Array(head.utf8)))
        self.body = body
        self.connection = connection
        self.exchangeIndex = exchangeIndex
    }

    /// The request of the same exchange with another text in a part of its head, such as the value of a field.
    ///
    /// - Throws: if the head is not valid then.
    package func replacing(_ part: Range<Int>, with text: String) throws(Rejection) -> Request {
        var head = head
        head.replaceSubrange(part, with: text.utf8)
        var request = try Request(RequestHead(head))
        (request.body, request.connection, request.exchangeIndex) = (body, connection, exchangeIndex)
        (request.peer, request.isSecure) = (peer, isSecure)
        return request.droppingPathPrefix(droppedPrefixCount)
    }

    /// The request without the fields with these names. The other bytes are unchanged.
    package func removing(_ names: [StaticString]) -> Request {
        guard names.contains(where: { fields.range(of: $0) != nil }) else { return self }
        var request = self
        request.fields = fields.removing { line in names.contains { fields.isNamed(line, $0) } }
        return request
    }
}
