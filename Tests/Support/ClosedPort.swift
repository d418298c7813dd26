#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// A local port that refuses connections and stays reserved while this exists.
package final class ClosedPort {
    private let descriptor: Int32
    package let port: Int

    /// Binds a socket to a free port without listening.
    package init() throws {
        #if canImport(Darwin)
            let descriptor = socket(AF_INET, SOCK_STREAM, 0)
        #else
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        #endif
        self.descriptor = descriptor
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        unsafe inet_pton(AF_INET, "127.0.0.1", &address.sin_addr)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = unsafe withUnsafeMutableBytes(of: &address) { raw in
            let start = unsafe raw.assumingMemoryBound(to: sockaddr.self).baseAddress
            return unsafe bind(descriptor, start, size) == 0 && getsockname(descriptor, start, &size) == 0
        }
        port = Int(in_port_t(bigEndian: address.sin_port))
        guard isBound else { throw RawClient.Failure(reason: "no port is free") }
    }

    deinit { close(descriptor) }
}
