import LarderBackend
import LarderEngine
import LarderHTTP
import LarderTime
import Synchronization

/// Answers requests with the replies of another server.
///
/// Replies are read completely, up to `bodyBytesMaximum`, before faults apply; event streams and WebSockets are passed on as they
/// arrive. Safe from any thread.
final class ProxyOrigin: Sendable {
    /// The maximum size of a reply that is not an event stream.
    static let bodyBytesMaximum = 64 << 20

    private let address: UpstreamAddress
    /// Host and port, as in `Host`.
    private let authority: String
    /// The path of the URL, without its last slash; it precedes the path of each request.
    private let basePath: String

    /// - Throws: if the host has no address.
    init(_ url: HTTPURL) throws(EngineError) {
        address = try UpstreamAddress(host: url.host, port: url.port)
        authority = url.authority
        basePath = url.path.hasSuffix("/") ? String(url.path.dropLast()) : url.path
    }

    /// Sends a request on, and completes the exchange with the reply.
    func handle(_ request: Request, _ exchange: Exchange, _ world: World) {
        let outgoing = UpstreamRequest(
            method: request.method,
            head: head(of: request),
            body: request.body,
            isUpgrade: request.isWebSocketUpgrade
        )
        let relay = ProxyRelay(request, exchange, world, origin: authority)
        relay.task = exchange.loop.send(outgoing, to: address) { relay.received($0) }
    }

    /// The head of the request to the server, with the empty line (RFC 9110 §7.6).
    private func head(of request: Request) -> [UInt8] {
        var head = "\(request.method.rawValue) "
        head += request.targetText == "*" ? "*" : basePath + request.targetText
        head += " HTTP/1.1\r\nHost: \(authority)\r\n"
        let omitted = ProxyFields.omitted(connection: request.fields.combined(.connection))
        var via = "1.\(request.minorVersion) larder"
        for (name, value) in request.fields.all {
            guard let field = FieldName(name) else { continue }
            if field == .via {
                via = "\(value), \(via)"
            } else if !omitted.contains(field), !ProxyFields.own.contains(field) {
                head += "\(name): \(value)\r\n"
            }
        }
        if request.isWebSocketUpgrade {
            head += "Connection: Upgrade\r\nUpgrade: websocket\r\n"
        } else if !request.body.isEmpty || [.post, .put, .patch].contains(request.method) {
            head += "Content-Length: \(request.body.count)\r\n"
        }
        // RFC 7239 §4, §6: an IPv6 address is in brackets and quotes.
        let peer = request.peer.host.contains(":") ? "\"[\(request.peer.host)]\"" : request.peer.host
        let host = request.fields.combined(.host).map { ";host=\"\($0)\"" } ?? ""
        let earlier = request.fields.combined(.forwarded).map { $0 + ", " } ?? ""
        head += "Via: \(via)\r\nForwarded: \(earlier)for=\(peer)\(host);proto=http\r\n\r\n"
        return Array(head.utf8)
    }
}

/// The fields that concern one connection only.
enum ProxyFields {
    /// The fields that the proxy itself writes in requests.
    static let own: Set<FieldName> = [.host, .contentLength, .forwarded, "Larder-World", "Sec-WebSocket-Extensions"]

    private static let hopByHop: Set<FieldName> = [
        .connection, .keepAlive, "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization", "TE", "Trailer",
        .transferEncoding, .upgrade, .expect,
    ]

    /// The fields that are not passed on: those of RFC 9110 §7.6.1 and those that `Connection` names.
    static func omitted(connection: String?) -> Set<FieldName> {
        var names = hopByHop
        for name in FieldList.members(of: connection ?? "") {
            if let name = FieldName(name) { names.insert(name) }
        }
        return names
    }
}

extension FieldName {
    static let via: FieldName = "Via"
    static let forwarded: FieldName = "Forwarded"
}
