import LarderHTTP

/// Serialises requests (RFC 9112 §3).
enum SocketRequest {
    /// The head of a request, and its content if that is in memory.
    ///
    /// - Parameters:
    ///   - uploadLength: the length of the request's `upload`; nil: unknown, so that it is sent in chunks.
    ///   - proxy: the proxy that gets the request; nil: the server does.
    /// - Throws: `.invalidRequest` for `CONNECT`, for a method that is not a token, and for two contents.
    static func bytes(
        _ request: TransportRequest,
        _ url: HTTPURL,
        uploadLength: Int? = nil,
        offersCodings: Bool,
        proxy: Proxy? = nil
    ) throws(TransportError) -> [UInt8] {
        let method = request.method.rawValue
        guard FieldName(method) != nil, method != "CONNECT" else {
            throw TransportError(.invalidRequest, "'\(method)' is not a method that can be sent to a server.")
        }
        guard request.body.isEmpty || request.upload == nil else {
            throw TransportError(.invalidRequest, "The request has both 'body' and 'upload'. Set one of them.")
        }
        var head = "\(method) \(proxy == nil ? url.target : url.text) HTTP/1.1\r\nHost: \(url.authority)\r\n"
        if let proxy { head += proxy.authorizationLine }
        for field in request.fieldsWithContentType where !isReserved(field.name) {
            head += "\(field.name): \(field.value)\r\n"
        }
        if !request.fields.contains(.acceptEncoding) {
            head += offersCodings ? "Accept-Encoding: gzip, deflate\r\n" : "Accept-Encoding: identity\r\n"
        }
        if !request.fields.contains(.userAgent) { head += "User-Agent: Larder\r\n" }
        if request.upload != nil {
            head += uploadLength.map { "Content-Length: \($0)\r\n" } ?? "Transfer-Encoding: chunked\r\n"
        } else if !request.body.isEmpty || ["POST", "PUT", "PATCH"].contains(method) {
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
    static func isReserved(_ name: FieldName) -> Bool {
        switch name.canonical {
        case "host", "content-length", "transfer-encoding", "connection", "keep-alive", "proxy-connection",
            "proxy-authorization", "te", "trailer", "upgrade", "expect":
            true
        default: false
        }
    }
}
