import CSystem
import Glibc

/// System calls on sockets and files. Each reads `errno` immediately and retries after a signal.
enum SystemCall {
    enum Outcome {
        case count(Int)
        /// The call would block; the poller reports readiness.
        case wouldBlock
        case failed(Int32)
    }

    static func describe(_ code: Int32) -> String { unsafe String(cString: strerror(code)) }

    /// Receives bytes at the beginning of a buffer, up to its size.
    static func receive(_ descriptor: Int32, into buffer: inout [UInt8]) -> Outcome {
        unsafe buffer.withUnsafeMutableBytes { raw in
            repeating { unsafe recv(descriptor, raw.baseAddress, raw.count, 0) }
        }
    }

    static func send(_ descriptor: Int32, _ bytes: [UInt8], from offset: Int) -> Outcome {
        repeating {
            unsafe bytes.withUnsafeBytes { raw in
                let rest = unsafe UnsafeRawBufferPointer(rebasing: raw[offset...])
                return unsafe sendto(descriptor, rest.baseAddress, rest.count, quietly, nil, 0)
            }
        }
    }

    /// Repeats a call while signals interrupt it.
    @inline(__always) private static func repeating(_ call: () -> Int) -> Outcome {
        while true {
            let count = call()
            if count >= 0 { return .count(count) }
            let code = errno
            if code == EINTR { continue }
            return code == EAGAIN || code == EWOULDBLOCK ? .wouldBlock : .failed(code)
        }
    }

    /// The pending error of a socket, such as that of a connection attempt; 0 for none.
    static func error(of descriptor: Int32) -> Int32 {
        var code: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        let result = unsafe getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &length)
        return result == 0 ? code : errno
    }

    /// Closes a socket with a RST instead of a FIN.
    static func closeWithReset(_ descriptor: Int32) {
        var choice = linger(l_onoff: 1, l_linger: 0)
        unsafe setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &choice, socklen_t(MemoryLayout<linger>.size))
        close(descriptor)
    }

    /// Prevents SIGPIPE on send.
    private static let quietly = Int32(MSG_NOSIGNAL)

    /// Makes a descriptor non-blocking and close-on-exec.
    static func configure(_ descriptor: Int32) {
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    }

    static func setOption(_ descriptor: Int32, _ level: Int32, _ option: Int32, _ value: Int32) {
        var value = value
        _ = unsafe setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
    }
}
