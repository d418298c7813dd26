import CSystem
import Glibc
package import LarderTLS

/// The resolved addresses of another server.
package struct UpstreamAddress: Sendable, Hashable {
    /// One socket address, as the system has it.
    struct Place: Sendable, Hashable {
        let family: Int32
        let bytes: [UInt8]
    }

    package let host: String
    package let port: Int
    let places: [Place]
    /// Makes the TLS sessions; nil for http.
    package let tls: TLSClient?

    /// Looks up the addresses of a host. It may block for seconds.
    ///
    /// - Throws: if the host has no address.
    package init(host: String, port: Int, tls: TLSClient? = nil) throws(EngineError) {
        self.tls = tls
        self.host = host
        self.port = port
        places = try Place.lookUp(host, port)
    }
}

extension UpstreamAddress.Place {
    /// - Parameter flags: further ones of getaddrinfo(3).
    static func lookUp(_ host: String, _ port: Int, _ flags: Int32 = 0) throws(EngineError) -> [Self] {
        var hints = unsafe addrinfo()
        unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        unsafe hints.ai_flags = AI_NUMERICSERV | flags
        var list: UnsafeMutablePointer<addrinfo>?
        let code = unsafe getaddrinfo(host, String(port), &hints, &list)
        guard code == 0 else {
            throw EngineError("'\(host)' has no address: \(unsafe String(cString: gai_strerror(code)))")
        }
        defer { unsafe freeaddrinfo(list) }
        var places: [Self] = []
        var next = unsafe list
        while let entry = unsafe next {
            let info = unsafe entry.pointee
            if let start = unsafe info.ai_addr {
                let raw = unsafe UnsafeRawBufferPointer(start: start, count: Int(info.ai_addrlen))
                unsafe places.append(Self(family: info.ai_family, bytes: Array(raw)))
            }
            unsafe next = unsafe info.ai_next
        }
        return places
    }

    /// Creates a non-blocking socket and begins to connect.
    ///
    /// - Throws: if the connection fails at once.
    func connect() throws(EngineError) -> Int32 {
        let descriptor = socket(family, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { throw EngineError("Creating a socket failed", errno) }
        SystemCall.configure(descriptor)
        SystemCall.setOption(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, 1)
        let result = unsafe bytes.withUnsafeBytes { raw in
            unsafe Glibc.connect(
                descriptor,
                raw.assumingMemoryBound(to: sockaddr.self).baseAddress,
                socklen_t(raw.count)
            )
        }
        let code = errno
        guard result == 0 || code == EINPROGRESS || code == EINTR else {
            close(descriptor)
            throw EngineError("Connecting failed", code)
        }
        return descriptor
    }
}
