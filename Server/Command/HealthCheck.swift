import LarderArguments

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Asks a server whether it is well, for containers that have no curl.
enum HealthCheck {
    static func run(_ url: String) throws {
        let rest = url.hasPrefix("http://") ? url.dropFirst("http://".count) : url[...]
        let authority = rest.prefix { $0 != "/" }
        let parts = authority.split(separator: ":", maxSplits: 1)
        guard let host = parts.first, let port = UInt16(parts.count > 1 ? parts[1] : "80") else {
            throw UsageError(message: "--check-health takes a URL such as http://127.0.0.1:8080")
        }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        guard unsafe inet_pton(AF_INET, host == "localhost" ? "127.0.0.1" : String(host), &address.sin_addr) == 1 else {
            throw UsageError(message: "--check-health takes an IPv4 address or localhost, not «\(host)»")
        }
        #if canImport(Darwin)
            let descriptor = socket(AF_INET, SOCK_STREAM, 0)
        #else
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        #endif
        defer { close(descriptor) }
        var limit = timeval(tv_sec: 3, tv_usec: 0)
        unsafe setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        let connected = unsafe withUnsafeBytes(of: &address) { raw in
            unsafe connect(descriptor, raw.assumingMemoryBound(to: sockaddr.self).baseAddress, socklen_t(raw.count))
        }
        guard connected == 0 else { throw HealthError(description: "nothing listens at \(authority)") }
        let request = Array("GET /healthz HTTP/1.1\r\nHost: \(authority)\r\nConnection: close\r\n\r\n".utf8)
        _ = unsafe request.withUnsafeBytes { unsafe send(descriptor, $0.baseAddress, $0.count, 0) }
        var reply = [UInt8](repeating: 0, count: 64)
        let count = unsafe recv(descriptor, &reply, reply.count, 0)
        guard count > 12, String(decoding: reply[9..<12], as: UTF8.self) == "200" else {
            throw HealthError(description: "\(authority) does not answer with 200")
        }
    }
}

private struct HealthError: Error, CustomStringConvertible {
    let description: String
}
