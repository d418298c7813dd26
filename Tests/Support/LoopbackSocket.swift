import Glibc

/// IPv4 sockets of this machine's loopback address. The caller closes them.
package enum LoopbackSocket {
    /// Binds a socket to a free port.
    ///
    /// - Parameters:
    ///   - backlog: how many connections may wait to be accepted; nil if the socket does not listen.
    ///   - receiveBufferBytes: the size of the receive buffers of its connections; nil lets the system choose. The system may
    ///     round it up, and does not enlarge it later.
    package static func bound(
        backlog: Int32?,
        receiveBufferBytes: Int32? = nil
    ) throws -> (descriptor: Int32, port: Int) {
        let descriptor = make()
        if var bytes = receiveBufferBytes {
            unsafe setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &bytes, socklen_t(MemoryLayout<Int32>.size))
        }
        var address = loopback(0)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = unsafe withUnsafeMutableBytes(of: &address) { raw in
            let start = unsafe raw.assumingMemoryBound(to: sockaddr.self).baseAddress
            return unsafe bind(descriptor, start, size) == 0 && getsockname(descriptor, start, &size) == 0
        }
        guard isBound, backlog.map({ listen(descriptor, $0) == 0 }) ?? true else {
            close(descriptor)
            throw RawClient.Failure(reason: "no port is free")
        }
        return (descriptor, Int(in_port_t(bigEndian: address.sin_port)))
    }

    /// A socket that is connected to a port.
    package static func connected(to port: Int) throws -> Int32 {
        let descriptor = make()
        var address = loopback(port)
        let result = unsafe withUnsafeBytes(of: &address) { raw in
            unsafe connect(descriptor, raw.assumingMemoryBound(to: sockaddr.self).baseAddress, socklen_t(raw.count))
        }
        guard result == 0 else {
            close(descriptor)
            throw RawClient.Failure(reason: "nothing listens on port \(port)")
        }
        return descriptor
    }

    private static func make() -> Int32 {
        socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    }

    private static func loopback(_ port: Int) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        unsafe inet_pton(AF_INET, "127.0.0.1", &address.sin_addr)
        return address
    }
}
