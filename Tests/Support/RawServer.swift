#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// A TCP server whose connections a test reads and writes itself.
package final class RawServer {
    package let port: Int
    private let listener: Int32

    package var url: String { "http://127.0.0.1:\(port)" }

    /// Listens on a free port of this machine.
    package init() throws {
        #if canImport(Darwin)
            listener = socket(AF_INET, SOCK_STREAM, 0)
        #else
            listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        #endif
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        unsafe inet_pton(AF_INET, "127.0.0.1", &address.sin_addr)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let descriptor = listener
        let isListening = unsafe withUnsafeMutableBytes(of: &address) { raw in
            let start = unsafe raw.assumingMemoryBound(to: sockaddr.self).baseAddress
            return unsafe bind(descriptor, start, size) == 0 && listen(descriptor, 16) == 0
                && getsockname(descriptor, start, &size) == 0
        }
        port = Int(in_port_t(bigEndian: address.sin_port))
        guard isListening else { throw RawClient.Failure(reason: "no port is free") }
    }

    deinit { close(listener) }

    /// The next connection. Yields while it waits.
    package func next() async throws -> RawClient {
        while !Task.isCancelled {
            var waiting = pollfd(fd: listener, events: Int16(POLLIN), revents: 0)
            if unsafe poll(&waiting, 1, 2) > 0 { return RawClient(descriptor: accept(listener, nil, nil)) }
            await Task.yield()
        }
        throw RawClient.Failure(reason: "cancelled before a connection")
    }
}
