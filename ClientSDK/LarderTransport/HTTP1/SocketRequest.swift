import LarderHTTP

/// Serialises requests (RFC 9112 §3).
enum SocketRequest {
    /// - Throws: `.invalidRequest` for `CONNECT` and for a method that is not a token.
    static func bytes(
        _ request: TransportRequest,
        _ url: HTTPURL,
        offersCodings: Bool
    ) throws(TransportError) -> [UInt8] {
        let method = request.method.rawValue
        guard FieldName(method) != nil, method != "CONNECT" else {
            throw TransportError(.invalidRequest, "'\(method)' is not a method that can be sent to a server.")
        }
        var head = "\(method) \(url.target) HTTP/1.1\r\nHost: \(url.authority)\r\n"
        for field in request.fields where !isOurs(field.name) { head += "\(field.name): \(field.value)\r\n" }
        if !request.fields.contains(.acceptEncoding) {
            head += offersCodings ? "Accept-Encoding: gzip, deflate\r\n" : "Accept-Encoding: identity\r\n"
        }
        if !request.fields.contains(.userAgent) { head += "User-Agent: Larder\r\n" }
        if !request.body.isEmpty || ["POST", "PUT", "PATCH"].contains(method) {
            head += "Content-Length: \(request.body.count)\r\n"
        }
        head += "\r\n"
        var bytes: [UInt8] = []
        bytes.reserveCapacity(head.utf8.count + request.body.count)
        bytes += head.utf8
        bytes += request.body
        return bytes
    }

    /// Whether the transport may offer content codings for a request. Ranges are of coded content, and a part of it cannot be
    /// decoded.
    static func offersCodings(_ request: TransportRequest) -> Bool {
        !request.fields.contains(.acceptEncoding) && !request.fields.contains(.range)
    }

    /// Fields that the transport sets itself: target, framing and connection.
    private static func isOurs(_ name: FieldName) -> Bool {
        switch name.canonical {
        case "host", "content-length", "transfer-encoding", "connection", "keep-alive", "proxy-connection", "te",
            "trailer", "upgrade", "expect":
            true
        default: false
        }
    }
}
