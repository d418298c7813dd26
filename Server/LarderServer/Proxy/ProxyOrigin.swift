import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTLS
import Synchronization

/// Answers requests with the replies of another server.
///
/// Replies are read completely, up to `bodyBytesMaximum`, before faults apply; event streams and WebSockets are passed on as they
/// arrive. Requests for the names of other sites and its own requests are rejected. Safe from any thread.
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
    private let allowedHosts: Set<String>
    let memory: BodyMemory
    /// The name of this proxy in `Via` of the requests that it sends (RFC 9110 §7.6.3), unlike that of any other proxy.
    private let name: String

    /// Whether the server is asked over https.
    let isSecure: Bool
    /// Why the server has not answered the last request; nil if it has.
    private let failure = Mutex<String?>(nil)
    /// Told of each new `failure`.
    private let announce: (@Sendable (String) -> Void)?

    /// - Throws: if the host has no address; for https `TLSError` without OpenSSL, or for settings that cannot be used.
    init(_ url: HTTPURL, _ settings: ProxySettings, announce: (@Sendable (String) -> Void)?) throws {
        self.announce = announce
        isSecure = url.scheme.isSecure
        allowedHosts = Set((settings.allowedHosts + LocalHosts.names).map { $0.lowercased() })
        memory = BodyMemory(bytesMaximum: settings.bodyBytesMaximum)
        name = "larder-" + String(UInt32.random(in: 0 ... .max), radix: 16)
        let tls = isSecure ? try TLSClient(settings.tls) : nil
        address = try UpstreamAddress(host: url.host, port: url.port, tls: tls)
        authority = url.authority
        basePath = url.path.hasSuffix("/") ? String(url.path.dropLast()) : url.path
        beginning = Array(" HTTP/1.1\r\nHost: \(url.authority)\r\n".utf8)
    }

    /// Sends a request on, and completes the exchange with the reply. If the client goes away first, or the world is destroyed, the request
    /// is cancelled.
    ///
    /// - Throws: a problem for a request that is not sent on.
    func handle(_ request: Request, _ exchange: Exchange, _ world: World) throws(Problem) {
        try check(request)
        // In any other request the server ignores the field (RFC 9110 §7.8, RFC 6455 §4.1), and the body must have a length.
        let isUpgrade =
            request.method == .get && request.minorVersion == 1 && request.body.isEmpty && request.isWebSocketUpgrade
        let bytes = bytes(of: request, isUpgrade: isUpgrade)
        let relay = ProxyRelay(request, exchange, world, self)
        let outgoing = UpstreamRequest(method: request.method, bytes: bytes, isUpgrade: isUpgrade)
        relay.begin(exchange.loop.send(outgoing, to: address, relay))
    }

    /// The reply to a request that the server has not answered. The reason is in its `Proxy-Status` too (RFC 9209), so that the journal
    /// has it, and is announced unless the request before failed for the same one.
    func reply(_ problem: Problem, to request: Request) -> Reply {
        let reason = problem.detail ?? problem.title
        let isNew = failure.withLock { failure in
            defer { failure = reason }
            return failure != reason
        }
        if isNew { announce?(reason) }
        let text = reason.filter { $0.isASCII && !$0.isNewline && $0 != "\"" && $0 != "\\" }
        var problem = problem
        problem.fields.set("Proxy-Status", "larder; details=\"\(text)\"")
        return problem.reply(to: request)
    }

    func hasAnswered() { failure.withLock { $0 = nil } }

    private func check(_ request: Request) throws(Problem) {
        let sent = FieldList.members(of: request.fields.combined("Via") ?? "")
        guard !sent.contains(where: { $0.split(separator: " ").dropFirst().first.map { $0 == name } ?? false }) else {
            throw ProblemType.loopDetected("\(authority) leads back to this proxy.")
        }
        guard let host = request.hostName else { return }
        guard Self.isPrivate(host) || allowedHosts.contains(host) else {
            throw ProblemType.hostRejected(
                "The host '\(host.prefix(100))' may be that of another site. Use the address of this machine, or start the proxy "
                    + "with --allow-host \(host.prefix(100))."
            )
        }
    }

    /// Whether no other site can have the host as its name: an address, a name without a dot, or one under `localhost` or `test`
    /// (RFC 6761 §6.2, §6.3).
    private static func isPrivate(_ host: String) -> Bool {
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        if parts.count == 1 || host.contains(":") || parts.last == "localhost" || parts.last == "test" { return true }
        return parts.count == 4 && parts.allSatisfy { part in UInt8(part).map { String($0) == part } ?? false }
    }

    /// The fields that the proxy itself writes in requests, or answers.
    private static let own: [StaticString] = ["host", "content-length", "forwarded", "larder-world"]

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
        ProxyFields(fields).append(to: &bytes, omitting: Self.own, minorVersion: request.minorVersion, name: name)
        if isUpgrade {
            bytes.append("Connection: Upgrade\r\nUpgrade: websocket\r\n")
        } else if !request.body.isEmpty || request.method == .post || request.method == .put
            || request.method == .patch
        {
            bytes.append("Content-Length: ")
            bytes.append(contentsOf: "\(request.body.count)\r\n".utf8)
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
        head.append(request.isSecure ? ";proto=https\r\n" : ";proto=http\r\n")
    }
}
