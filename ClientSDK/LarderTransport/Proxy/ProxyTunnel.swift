import LarderHTTP
import LarderHTTPWire

/// The opening of a tunnel through a proxy (`CONNECT`, RFC 9110 §9.3.6). A value without I/O.
struct ProxyTunnel: Sendable {
    let proxy: Proxy
    private let authority: String
    private var reader = ResponseReader(.connect)

    /// - Parameter endpoint: the server at the end of the tunnel.
    init(_ proxy: Proxy, to endpoint: Endpoint) {
        self.proxy = proxy
        authority =
            endpoint.host.contains(":") ? "[\(endpoint.host)]:\(endpoint.port)" : "\(endpoint.host):\(endpoint.port)"
    }

    var request: [UInt8] {
        Array("CONNECT \(authority) HTTP/1.1\r\nHost: \(authority)\r\n\(proxy.authorizationLine)\r\n".utf8)
    }

    /// Reads the proxy's answer.
    ///
    /// - Returns: whether the tunnel is open: everything after it is for and from the server.
    /// - Throws: `.unreachable` or `.proxyRejected`: nothing was sent to the server.
    mutating func receive(_ bytes: Span<UInt8>) throws(TransportError) -> Bool {
        var events: [ResponseReader.Event] = []
        do throws(ResponseReader.Failure) { try reader.receive(bytes, &events) } catch {
            throw TransportError(
                .unreachable,
                "The proxy \(proxy) does not answer as a proxy: \(error). Check its URL."
            )
        }
        for case .head(let head) in events {
            guard (200..<300).contains(head.status.code) else { throw proxy.rejection(head.status, of: authority) }
            return true
        }
        return false
    }

    /// The error of a connection to the proxy that has ended before the tunnel was open.
    func failure(_ reason: String) -> TransportError {
        TransportError(.unreachable, "The proxy \(proxy) opened no tunnel to \(authority): \(reason)")
    }
}
