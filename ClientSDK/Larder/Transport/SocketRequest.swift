import LarderHTTP

/// A request as bytes (RFC 9112 §3).
enum SocketRequest {
    /// - Throws: `.invalidRequest` for a method that is no token, or that asks for a tunnel.
    static func bytes(_ request: TransportRequest, _ target: SocketTarget) throws(TransportError) -> [UInt8] {
        let method = request.method.rawValue
        guard FieldName(method) != nil, method != "CONNECT" else {
            throw TransportError(.invalidRequest, "«\(method)» is no method that can be sent to a server.")
        }
        var head = "\(method) \(target.path) HTTP/1.1\r\nHost: \(target.authority)\r\n"
        for field in request.fields where !isOurs(field.name) { head += "\(field.name): \(field.value)\r\n" }
        // We decode nothing, and say so where the caller does not want to decode it himself.
        if !request.fields.contains(.acceptEncoding) { head += "Accept-Encoding: identity\r\n" }
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

    /// Fields that say where the request goes, how long it is and what becomes of the connection: we know, the caller does not.
    private static func isOurs(_ name: FieldName) -> Bool {
        switch name.canonical {
        case "host", "content-length", "transfer-encoding", "connection", "keep-alive", "proxy-connection", "te",
            "trailer", "upgrade", "expect":
            true
        default: false
        }
    }
}
