import LarderBackend
import LarderEngine
import LarderHTTP

/// Answers requests with the replies of another server.
///
/// Replies are read completely, up to `bodyBytesMaximum`, before faults apply; event streams and WebSockets are passed on as they
/// arrive. Safe from any thread.
final class ProxyOrigin: Sendable {
    /// The maximum size of a reply that is not an event stream.
    static let bodyBytesMaximum = 64 << 20

    private let address: UpstreamAddress
    /// Host and port, as in `Host`.
    let authority: String
    /// The path of the URL, without its last slash; it precedes the path of each request.
    let basePath: String
    /// The end of the request line, and `Host`.
    private let beginning: [UInt8]

    /// - Throws: if the host has no address.
    init(_ url: HTTPURL) throws(EngineError) {
        address = try UpstreamAddress(host: url.host, port: url.port)
        authority = url.authority
        basePath = url.path.hasSuffix("/") ? String(url.path.dropLast()) : url.path
        beginning = Array(" HTTP/1.1\r\nHost: \(url.authority)\r\n".utf8)
    }

    /// Sends a request on, and completes the exchange with the reply. If the client goes away first, the request is cancelled.
    func handle(_ request: Request, _ exchange: Exchange, _ world: World) {
        let isUpgrade = request.isWebSocketUpgrade
        let bytes = bytes(of: request, isUpgrade: isUpgrade)
        let relay = ProxyRelay(request, exchange, world, self)
        let outgoing = UpstreamRequest(method: request.method, bytes: bytes, isUpgrade: isUpgrade)
        let task = exchange.loop.send(outgoing, to: address, relay)
        relay.task = task
        exchange.whenAbandoned { task.cancel() }
    }

    /// The fields that the proxy itself writes in requests, or answers.
    private static let own: NameSet = [
        "host", "content-length", "forwarded", "larder-world", "sec-websocket-extensions",
    ]

    /// The request to the server (RFC 9110 §7.6).
    private func bytes(of request: Request, isUpgrade: Bool) -> [UInt8] {
        let fields = request.fields
        var bytes: [UInt8] = []
        bytes.reserveCapacity(
            fields.head.count + basePath.utf8.count + beginning.count + 256 + request.body.count
        )
        bytes.append(contentsOf: request.method.rawValue.utf8)
        bytes.append(0x20)
        let target = request.targetBytes
        if !target.elementsEqual("*".utf8) {
            bytes.append(contentsOf: basePath.utf8)
            // A path that names only a world is empty.
            if target.first != UInt8(ascii: "/") { bytes.append(UInt8(ascii: "/")) }
        }
        bytes.append(contentsOf: target)
        bytes.append(contentsOf: beginning)
        ProxyFields(fields).append(to: &bytes, omitting: Self.own, minorVersion: request.minorVersion)
        if isUpgrade {
            bytes.append("Connection: Upgrade\r\nUpgrade: websocket\r\n")
        } else if !request.body.isEmpty || request.method == .post || request.method == .put
            || request.method == .patch
        {
            bytes.append("Content-Length: ")
            bytes.append(decimal: request.body.count)
            bytes.append("\r\n")
        }
        appendForwarded(request, to: &bytes)
        bytes.append("\r\n")
        bytes.append(contentsOf: request.body)
        return bytes
    }

    /// `Forwarded` (RFC 7239 §4).
    private func appendForwarded(_ request: Request, to head: inout [UInt8]) {
        let fields = request.fields
        head.append("Forwarded: ")
        for line in fields.lines where fields.isNamed(line, "forwarded") {
            head.append(contentsOf: fields.value(of: line))
            head.append(", ")
        }
        let peer = request.peer.host.utf8
        // An IPv6 address is in brackets and quotes (RFC 7239 §6).
        let isIPv6 = peer.contains(UInt8(ascii: ":"))
        head.append(isIPv6 ? "for=\"[" : "for=")
        head.append(contentsOf: peer)
        if isIPv6 { head.append("]\"") }
        if let host = fields.range(of: "host") {
            head.append(";host=\"")
            head.append(contentsOf: fields.head[host])
            head.append(UInt8(ascii: "\""))
        }
        head.append(";proto=http\r\n")
    }
}
