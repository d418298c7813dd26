import CSystem
import Glibc
import Synchronization

/// The address of a peer or a listener.
package struct SocketAddress: Sendable, Hashable, CustomStringConvertible {
    package let host: String
    package let port: Int

    package init(host: String, port: Int) {
        self.host = host
        self.port = port
    }

    package var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }

    /// Whether the address is a loopback address.
    package var isLoopback: Bool { host == "::1" || host.hasPrefix("127.") || host.hasPrefix("::ffff:127.") }
}

/// A socket that is bound to a port and does not listen: connections are refused, and no other process gets the port.
final class PortReservation: Sendable {
    private let descriptor: Int32

    init(descriptor: Int32) { self.descriptor = descriptor }

    deinit { close(descriptor) }
}

/// A listening socket. Closed by `stop()`, or when released.
final class Listener: Sendable {
    enum Acceptance {
        case connection(Int32, SocketAddress)
        case none
        /// The system has no free descriptor.
        case exhausted
    }

    let descriptor: Int32
    let address: SocketAddress
    private let isStopped = Atomic<Bool>(false)

    init(host: String, port: Int) throws(EngineError) {
        let literal = host == "localhost" ? "127.0.0.1" : host
        let isIPv6 = literal.contains(":")
        guard (0...65_535).contains(port) else { throw EngineError("The port \(port) is invalid") }
        descriptor = socket(isIPv6 ? AF_INET6 : AF_INET, Self.stream, 0)
        guard descriptor >= 0 else { throw EngineError("Creating a socket failed", errno) }
        SystemCall.configure(descriptor)
        SystemCall.setOption(descriptor, SOL_SOCKET, SO_REUSEADDR, 1)
        let result = isIPv6 ? Self.bind6(descriptor, literal, port) : Self.bind4(descriptor, literal, port)
        guard result == 0, listen(descriptor, 1_024) == 0 else {
            let code = result == -2 ? EINVAL : errno
            close(descriptor)
            if result == -2 { throw EngineError("'\(host)' is not an IP address or localhost") }
            let place = SocketAddress(host: literal, port: port)
            throw code == EADDRINUSE
                ? EngineError("another server listens at \(place); stop it, or use another port (--port N)")
                : EngineError("\(place): listening failed", code)
        }
        address = Self.localAddress(descriptor) ?? SocketAddress(host: literal, port: port)
    }

    deinit { stop() }

    /// Closes the socket. Call it when no loop watches it any more.
    func stop() {
        guard !isStopped.exchange(true, ordering: .acquiringAndReleasing) else { return }
        close(descriptor)
    }

    /// Reserves the port while nothing listens on it; nil if the system does not allow it.
    ///
    /// Bound before this socket is closed, so that no other process can take the port in between.
    func reservation() -> PortReservation? {
        SystemCall.setOption(descriptor, SOL_SOCKET, SO_REUSEPORT, 1)
        let isIPv6 = address.host.contains(":")
        let reserved = socket(isIPv6 ? AF_INET6 : AF_INET, Self.stream, 0)
        guard reserved >= 0 else { return nil }
        SystemCall.configure(reserved)
        SystemCall.setOption(reserved, SOL_SOCKET, SO_REUSEADDR, 1)
        SystemCall.setOption(reserved, SOL_SOCKET, SO_REUSEPORT, 1)
        let bind = isIPv6 ? Self.bind6 : Self.bind4
        guard bind(reserved, address.host, address.port) == 0 else {
            close(reserved)
            return nil
        }
        SystemCall.setOption(reserved, SOL_SOCKET, SO_REUSEPORT, 0)
        return PortReservation(descriptor: reserved)
    }

    func accept() -> Acceptance {
        while true {
            var storage = sockaddr_storage()
            var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
            let accepted = unsafe withUnsafeMutableBytes(of: &storage) { raw in
                unsafe Self.accept(descriptor, raw.assumingMemoryBound(to: sockaddr.self).baseAddress, &length)
            }
            if accepted >= 0 {
                SystemCall.setOption(accepted, Int32(IPPROTO_TCP), TCP_NODELAY, 1)
                return .connection(accepted, Self.address(&storage))
            }
            switch errno {
            case EINTR, ECONNABORTED: continue
            case EMFILE, ENFILE, ENOBUFS, ENOMEM: return .exhausted
            default: return .none
            }
        }
    }

    private static func accept(
        _ descriptor: Int32,
        _ address: UnsafeMutablePointer<sockaddr>?,
        _ length: UnsafeMutablePointer<socklen_t>
    ) -> Int32 {
        unsafe accept4(
            descriptor,
            address,
            length,
            Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        )
    }

    private static let stream = Int32(SOCK_STREAM.rawValue)

    /// -2 for text that is not an address.
    private static func bind4(_ descriptor: Int32, _ host: String, _ port: Int) -> Int32 {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        guard unsafe inet_pton(AF_INET, host, &address.sin_addr) == 1 else { return -2 }
        return unsafe withUnsafeBytes(of: &address) { raw in
            unsafe bind(descriptor, raw.assumingMemoryBound(to: sockaddr.self).baseAddress, socklen_t(raw.count))
        }
    }

    private static func bind6(_ descriptor: Int32, _ host: String, _ port: Int) -> Int32 {
        var address = sockaddr_in6()
        address.sin6_family = sa_family_t(AF_INET6)
        address.sin6_port = in_port_t(port).bigEndian
        guard unsafe inet_pton(AF_INET6, host, &address.sin6_addr) == 1 else { return -2 }
        return unsafe withUnsafeBytes(of: &address) { raw in
            unsafe bind(descriptor, raw.assumingMemoryBound(to: sockaddr.self).baseAddress, socklen_t(raw.count))
        }
    }

    private static func localAddress(_ descriptor: Int32) -> SocketAddress? {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let result = unsafe withUnsafeMutableBytes(of: &storage) { raw in
            unsafe getsockname(descriptor, raw.assumingMemoryBound(to: sockaddr.self).baseAddress, &length)
        }
        return result == 0 ? address(&storage) : nil
    }

    private static func address(_ storage: inout sockaddr_storage) -> SocketAddress {
        let family = Int32(storage.ss_family)
        return unsafe withUnsafeBytes(of: &storage) { raw in
            var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN) + 1)
            let port: UInt16
            if family == AF_INET6 {
                var address = unsafe raw.load(as: sockaddr_in6.self)
                port = UInt16(bigEndian: address.sin6_port)
                unsafe inet_ntop(AF_INET6, &address.sin6_addr, &text, socklen_t(text.count))
            } else {
                var address = unsafe raw.load(as: sockaddr_in.self)
                port = UInt16(bigEndian: address.sin_port)
                unsafe inet_ntop(AF_INET, &address.sin_addr, &text, socklen_t(text.count))
            }
            let bytes = text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
            return SocketAddress(host: String(decoding: bytes, as: UTF8.self), port: Int(port))
        }
    }
}
