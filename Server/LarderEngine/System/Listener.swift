import CSystem
import Glibc

/// The address of a peer or a listener.
package struct SocketAddress: Sendable, Hashable, CustomStringConvertible {
    package let host: String
    package let port: Int

    package init(host: String, port: Int) {
        self.host = host
        self.port = port
    }

    package var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }

    package var isLoopback: Bool { host == "::1" || host.hasPrefix("127.") }
}

/// A listening socket, which can pause. Closed when released.
final class Listener: Sendable {
    enum Acceptance {
        case connection(Int32, SocketAddress)
        case none
        /// The system has no free descriptor.
        case exhausted
    }

    let descriptor: Int32
    let address: SocketAddress

    init(host: String, port: Int) throws(EngineError) {
        let literal = host == "localhost" ? "127.0.0.1" : host
        guard (0...65_535).contains(port) else { throw EngineError("The port \(port) is invalid") }
        var bound = try Self.bound(literal, port)
        let address = Self.localAddress(bound) ?? SocketAddress(host: literal, port: port)
        if port == 0 {
            // While it does not listen, a socket keeps only a port that it was bound to by number.
            let first = bound
            defer { close(first) }
            bound = try Self.bound(literal, address.port)
        }
        (descriptor, self.address) = (bound, address)
        guard resume() else { throw Self.error(address, errno) }
    }

    private static func bound(_ host: String, _ port: Int) throws(EngineError) -> Int32 {
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        // getaddrinfo(3) also takes shorter forms, such as 127.1.
        guard host.contains(":") || parts.count == 4 && parts.allSatisfy({ UInt8($0) != nil }) else {
            throw EngineError("'\(host)' is not an IP address or localhost")
        }
        let places: [UpstreamAddress.Place]
        do { places = try UpstreamAddress.Place.lookUp(host, port, AI_NUMERICHOST) } catch {
            throw EngineError("'\(host)' is not an IP address or localhost: \(error)")
        }
        guard let place = places.first else { throw EngineError("'\(host)' has no address") }
        let descriptor = socket(place.family, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { throw EngineError("Creating a socket failed", errno) }
        SystemCall.configure(descriptor)
        SystemCall.setOption(descriptor, SOL_SOCKET, SO_REUSEADDR, 1)
        // Its connections inherit these: the system ends one whose client has vanished without a word after a minute.
        SystemCall.setOption(descriptor, SOL_SOCKET, SO_KEEPALIVE, 1)
        SystemCall.setOption(descriptor, Int32(IPPROTO_TCP), TCP_KEEPIDLE, 30)
        SystemCall.setOption(descriptor, Int32(IPPROTO_TCP), TCP_KEEPINTVL, 10)
        SystemCall.setOption(descriptor, Int32(IPPROTO_TCP), TCP_KEEPCNT, 3)
        let result = unsafe place.bytes.withUnsafeBytes { raw in
            unsafe bind(descriptor, raw.assumingMemoryBound(to: sockaddr.self).baseAddress, socklen_t(raw.count))
        }
        guard result == 0 else {
            let code = errno
            close(descriptor)
            throw error(SocketAddress(host: host, port: port), code)
        }
        return descriptor
    }

    private static func error(_ place: SocketAddress, _ code: Int32) -> EngineError {
        code == EADDRINUSE
            ? EngineError("another server listens at \(place); stop it, or use another port (--port N)")
            : EngineError("\(place): listening failed", code)
    }

    deinit { close(descriptor) }

    /// Refuses connections from now on, and keeps the port. Call it when no loop watches the socket any more.
    func pause() { shutdown(descriptor, Int32(SHUT_RD)) }

    /// Listens; false if another process does at the same address.
    func resume() -> Bool { listen(descriptor, 1_024) == 0 }

    func accept() -> Acceptance {
        while true {
            var storage = sockaddr_storage()
            var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
            let accepted = unsafe withUnsafeMutableBytes(of: &storage) { raw in
                let address = unsafe raw.assumingMemoryBound(to: sockaddr.self).baseAddress
                let flags = Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
                return unsafe accept4(descriptor, address, &length, flags)
            }
            if accepted >= 0 {
                SystemCall.setOption(accepted, Int32(IPPROTO_TCP), TCP_NODELAY, 1)
                return .connection(accepted, Self.address(&storage, length))
            }
            switch errno {
            case EINTR, ECONNABORTED: continue
            case EMFILE, ENFILE, ENOBUFS, ENOMEM: return .exhausted
            default: return .none
            }
        }
    }

    private static func localAddress(_ descriptor: Int32) -> SocketAddress? {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let result = unsafe withUnsafeMutableBytes(of: &storage) { raw in
            unsafe getsockname(descriptor, raw.assumingMemoryBound(to: sockaddr.self).baseAddress, &length)
        }
        return result == 0 ? address(&storage, length) : nil
    }

    private static func address(_ storage: inout sockaddr_storage, _ length: socklen_t) -> SocketAddress {
        var (host, port) = ([CChar](repeating: 0, count: 64), [CChar](repeating: 0, count: 8))
        let flags = NI_NUMERICHOST | NI_NUMERICSERV
        // It cannot fail for what the system has written itself.
        _ = unsafe withUnsafeBytes(of: &storage) { raw in
            let address = unsafe raw.assumingMemoryBound(to: sockaddr.self).baseAddress
            return unsafe getnameinfo(address, length, &host, 64, &port, 8, flags)
        }
        func text(_ characters: [CChar]) -> String {
            String(decoding: characters.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }
        // Without the interface of a link-local address (fe80::1%eth0), which is no part of an address in HTTP (RFC 7239 §6).
        var name = String(text(host).prefix { $0 != "%" })
        // An IPv4 address, as a socket for IPv6 shows it (RFC 4291 §2.5.5.2).
        if name.hasPrefix("::ffff:"), name.contains(".") { name.removeFirst("::ffff:".count) }
        return SocketAddress(host: name, port: Int(text(port)) ?? 0)
    }
}
