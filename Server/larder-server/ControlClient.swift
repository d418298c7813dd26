import Glibc
import LarderArguments
import LarderHTTP
import LarderHTTPWire

/// A minimal HTTP client for the control plane: one request per connection.
struct ControlClient {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    private let authority: String
    private let host: String
    private let port: Int
    private let timeoutSeconds: Int

    /// - Parameter timeoutSeconds: how long the server may send nothing. The default is longer than the longest wait that the
    ///   server accepts.
    init(_ url: String, timeoutSeconds: Int = 660) throws(UsageError) {
        let advice =
            "invalid server URL '\(url)'; use a URL such as http://127.0.0.1:8080"
            + (url.hasPrefix("https:") ? " (with --tls the server speaks http on the same port)" : "")
        guard let parsed = HTTPURL(url.contains("://") ? url : "http://" + url, schemes: [.http]) else {
            throw UsageError(message: advice)
        }
        guard parsed.target == "/" else {
            let world = parsed.path.split(separator: "/")
            let isWorld = world.count == 2 && world[0] == "w"
            throw UsageError(
                message: "the server URL '\(url)' has a path; use \(parsed.origin)"
                    + (isWorld ? " --world \(world[1])" : "")
            )
        }
        (authority, host, port) = (parsed.authority, parsed.host, parsed.port)
        self.timeoutSeconds = timeoutSeconds
    }

    /// Sends a request and reads the whole reply.
    ///
    /// - Throws: `Failure` if there is no server, or its reply is late, incomplete or not HTTP.
    func ask(
        _ method: String,
        _ path: String,
        _ fields: [(String, String)] = [],
        _ body: [UInt8]? = nil
    ) throws(Failure) -> (status: Int, body: [UInt8]) {
        let descriptor = try connected()
        defer { close(descriptor) }
        var text = "\(method) \(path) HTTP/1.1\r\nHost: \(authority)\r\nConnection: close\r\n"
        for (name, value) in fields { text += "\(name): \(value)\r\n" }
        if let body { text += "Content-Type: application/json\r\nContent-Length: \(body.count)\r\n" }
        let isSent = Self.send(Array((text + "\r\n").utf8) + (body ?? []), descriptor)
        // A server may reply before it has read everything, and close.
        do throws(Failure) { return try read(descriptor, isHead: method == "HEAD") } catch {
            throw isSent ? error : Failure(description: "\(authority) closed the connection while the request was sent")
        }
    }

    private func connected() throws(Failure) -> Int32 {
        var hints = unsafe addrinfo()
        unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        let code = unsafe getaddrinfo(host, String(port), &hints, &list)
        guard code == 0 else {
            throw Failure(description: "'\(host)' has no address: \(unsafe String(cString: gai_strerror(code)))")
        }
        defer { unsafe freeaddrinfo(list) }
        var next = unsafe list
        while let info = unsafe next?.pointee {
            let descriptor = unsafe socket(info.ai_family, info.ai_socktype, 0)
            var limit = timeval(tv_sec: timeoutSeconds, tv_usec: 0)
            for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
                unsafe setsockopt(descriptor, SOL_SOCKET, option, &limit, socklen_t(MemoryLayout<timeval>.size))
            }
            if unsafe connect(descriptor, info.ai_addr, info.ai_addrlen) == 0 { return descriptor }
            close(descriptor)
            unsafe next = info.ai_next
        }
        throw Failure(description: "no server listens at \(authority); start larder-server first")
    }

    /// Returns false if the peer does not take everything.
    private static func send(_ bytes: [UInt8], _ descriptor: Int32) -> Bool {
        let flags = Int32(MSG_NOSIGNAL)
        var sent = 0
        while sent < bytes.count {
            let count = unsafe bytes.withUnsafeBytes { raw in
                unsafe Glibc.send(descriptor, raw.baseAddress.map { unsafe $0 + sent }, bytes.count - sent, flags)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }

    private func read(_ descriptor: Int32, isHead: Bool) throws(Failure) -> (status: Int, body: [UInt8]) {
        var reader = ResponseReader(isHead: isHead)
        var events: [ResponseReader.Event] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while !reader.isComplete {
            let count = unsafe recv(descriptor, &buffer, buffer.count, 0)
            if count < 0 {
                let code = errno
                if code == EINTR { continue }
                guard code == EAGAIN || code == EWOULDBLOCK else {
                    throw Failure(description: "\(authority) reset the connection before the end of its reply")
                }
                throw Failure(description: "\(authority) sent nothing for \(timeoutSeconds) s; the reply is incomplete")
            }
            do throws(ResponseReader.Failure) {
                if count > 0 {
                    try reader.receive(buffer.span.extracting(..<count), &events)
                } else {
                    try reader.end(&events)
                }
            } catch { throw failure(error) }
        }
        var (status, body): (Int, [UInt8]) = (0, [])
        for event in events {
            switch event {
            case .head(let head): status = head.status.code
            case .content(let bytes): body.append(contentsOf: bytes)
            case .end: break
            }
        }
        return (status, body)
    }

    private func failure(_ failure: ResponseReader.Failure) -> Failure {
        switch failure {
        case .noResponse: Failure(description: "\(authority) closed the connection without a reply")
        case .truncated(let detail): Failure(description: "the reply of \(authority) is incomplete: \(detail)")
        case .malformed(let detail):
            Failure(description: "\(authority) does not answer like larder-server: \(detail)")
        }
    }
}
