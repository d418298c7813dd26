import Glibc
import LarderTime

/// System calls on sockets. Each reads `errno` immediately and repeats a call that a signal interrupted.
enum SocketCall {
    enum Outcome {
        case count(Int)
        /// The socket is not ready.
        case wouldBlock
        case failed(String)
    }

    /// Why a host was not found or not connected to.
    struct Failure: Error, Sendable, CustomStringConvertible {
        let description: String
    }

    /// A socket address from the resolver.
    struct Address: Sendable, Hashable {
        let family: Int32
        let bytes: [UInt8]
    }

    static func describe(_ code: Int32) -> String { unsafe String(cString: strerror(code)) }

    // MARK: Connecting

    /// Looks up the addresses of a host. It may block for seconds.
    ///
    /// - Parameter isNumeric: accepts only an address as the host, and does not block.
    static func resolve(_ host: String, port: Int, isNumeric: Bool = false) -> Result<[Address], Failure> {
        var hints = unsafe addrinfo()
        unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        unsafe hints.ai_flags = isNumeric ? AI_NUMERICSERV | AI_NUMERICHOST : AI_NUMERICSERV
        var list: UnsafeMutablePointer<addrinfo>?
        let code = unsafe getaddrinfo(host, String(port), &hints, &list)
        guard code == 0 else {
            let reason = unsafe String(cString: gai_strerror(code))
            return .failure(Failure(description: "'\(host)' has no address: \(reason)."))
        }
        defer { unsafe freeaddrinfo(list) }
        var addresses: [Address] = []
        var next = unsafe list
        while let entry = unsafe next {
            let info = unsafe entry.pointee
            if let start = unsafe info.ai_addr {
                let raw = unsafe UnsafeRawBufferPointer(start: start, count: Int(info.ai_addrlen))
                unsafe addresses.append(Address(family: info.ai_family, bytes: Array(raw)))
            }
            unsafe next = unsafe info.ai_next
        }
        return .success(addresses)
    }

    /// Creates a non-blocking socket and begins to connect.
    static func connect(_ address: Address) -> Result<Int32, Failure> {
        let descriptor = socket(address.family, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { return .failure(unreachable(errno)) }
        configure(descriptor)
        setOption(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, 1)
        let result = unsafe address.bytes.withUnsafeBytes { raw in
            unsafe systemConnect(descriptor, raw)
        }
        let code = errno
        guard result == 0 || code == EINPROGRESS || code == EINTR else {
            close(descriptor)
            return .failure(unreachable(code))
        }
        return .success(descriptor)
    }

    private static func systemConnect(_ descriptor: Int32, _ raw: UnsafeRawBufferPointer) -> Int32 {
        let address = unsafe raw.baseAddress?.assumingMemoryBound(to: sockaddr.self)
        return unsafe Glibc.connect(descriptor, address, socklen_t(raw.count))
    }

    /// Returns why connecting failed, after the socket became writable; nil if it is connected.
    static func connectionFailure(_ descriptor: Int32) -> Failure? {
        var code: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        guard unsafe getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &size) == 0 else { return unreachable(errno) }
        return code == 0 ? nil : unreachable(code)
    }

    private static func unreachable(_ code: Int32) -> Failure {
        Failure(description: "No connection could be made: \(describe(code)).")
    }

    private static func configure(_ descriptor: Int32) {
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    }

    private static func setOption(_ descriptor: Int32, _ level: Int32, _ option: Int32, _ value: Int32) {
        var value = value
        _ = unsafe setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
    }

    // MARK: Reading and writing

    /// The received bytes, at most `maximum`.
    static func receive(_ descriptor: Int32, maximum: Int) -> (bytes: [UInt8], outcome: Outcome) {
        var outcome = Outcome.wouldBlock
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: maximum) { buffer, count in
            while true {
                let result = unsafe recv(descriptor, buffer.baseAddress, maximum, 0)
                let code = errno
                if result < 0, code == EINTR { continue }
                count = max(0, result)
                if result >= 0 {
                    outcome = .count(result)
                } else if code != EAGAIN, code != EWOULDBLOCK {
                    outcome = .failed(describe(code))
                }
                return
            }
        }
        return (bytes, outcome)
    }

    static func send(_ descriptor: Int32, _ bytes: [UInt8], from offset: Int, isPipe: Bool = false) -> Outcome {
        while true {
            let count = unsafe bytes.withUnsafeBytes { raw in
                let rest = unsafe UnsafeRawBufferPointer(rebasing: raw[offset...])
                return unsafe isPipe
                    ? write(descriptor, rest.baseAddress, rest.count) : sendQuietly(descriptor, rest)
            }
            if count >= 0 { return .count(count) }
            let code = errno
            if code == EINTR { continue }
            return code == EAGAIN || code == EWOULDBLOCK ? .wouldBlock : .failed(describe(code))
        }
    }

    /// Never raises SIGPIPE.
    private static func sendQuietly(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Int {
        unsafe Glibc.send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
    }

    static func shut(_ descriptor: Int32) { close(descriptor) }

    /// Shuts down the sending side.
    static func finishSending(_ descriptor: Int32) { shutdown(descriptor, Int32(SHUT_WR)) }

    // MARK: The loop

    static func pipe() -> (read: Int32, write: Int32)? {
        var ends: [Int32] = [-1, -1]
        let result = unsafe Glibc.pipe(&ends)
        guard result == 0 else { return nil }
        ends.forEach(configure)
        return (ends[0], ends[1])
    }

    static func drain(_ descriptor: Int32) {
        var buffer = [UInt8](repeating: 0, count: 64)
        while true {
            let count = unsafe buffer.withUnsafeMutableBytes { unsafe read(descriptor, $0.baseAddress, $0.count) }
            if count > 0 || (count < 0 && errno == EINTR) { continue }
            return
        }
    }

    /// Waits until a descriptor is ready, the timeout is over, or a signal arrives.
    static func wait(_ polled: inout [pollfd], for timeout: Duration?) {
        var milliseconds: Int32 = -1
        if let timeout {
            // Rounded up, so that the call does not return before the deadline.
            let wanted = (max(.zero, timeout) + .nanoseconds(999_999)).nanosecondsSaturating / 1_000_000
            milliseconds = Int32(clamping: min(wanted, 3_600_000))
        }
        let result = unsafe poll(&polled, nfds_t(polled.count), milliseconds)
        if result < 0 { for index in polled.indices { polled[index].revents = 0 } }
    }
}
