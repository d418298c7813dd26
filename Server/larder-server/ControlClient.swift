import LarderArguments

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// A minimal HTTP client for the control plane: one request per connection.
struct ControlClient {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    private let authority: String
    private let host: String
    private let port: UInt16
    private let patience: Int

    /// - Parameter patience: the time limit in seconds for a reply. The default is longer than the longest wait that the server
    ///   accepts.
    init(_ url: String, patience: Int = 660) throws(UsageError) {
        let rest = url.hasPrefix("http://") ? url.dropFirst("http://".count) : url[...]
        authority = String(rest.prefix { $0 != "/" })
        let parts = authority.split(separator: ":", maxSplits: 1)
        guard !rest.contains("://"), let name = parts.first, let port = UInt16(parts.count > 1 ? parts[1] : "80") else {
            throw UsageError(message: "invalid server URL '\(url)'; use a URL such as http://127.0.0.1:8080")
        }
        host = name == "localhost" ? "127.0.0.1" : String(name)
        self.port = port
        self.patience = patience
    }

    func ask(
        _ method: String,
        _ path: String,
        _ fields: [(String, String)] = [],
        _ body: String? = nil
    ) throws -> (status: Int, body: [UInt8]) {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        guard unsafe inet_pton(AF_INET, host, &address.sin_addr) == 1 else {
            throw Failure(description: "'\(host)' is not an IPv4 address or localhost")
        }
        #if canImport(Darwin)
            let descriptor = socket(AF_INET, SOCK_STREAM, 0)
        #else
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        #endif
        defer { close(descriptor) }
        var limit = timeval(tv_sec: patience, tv_usec: 0)
        unsafe setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        let connected = unsafe withUnsafeBytes(of: &address) { raw in
            unsafe connect(descriptor, raw.assumingMemoryBound(to: sockaddr.self).baseAddress, socklen_t(raw.count))
        }
        guard connected == 0 else {
            throw Failure(description: "no server listens at \(authority); start larder-server first")
        }
        var text = "\(method) \(path) HTTP/1.1\r\nHost: \(authority)\r\nConnection: close\r\n"
        for (name, value) in fields { text += "\(name): \(value)\r\n" }
        if let body { text += "Content-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n" }
        let request = Array((text + "\r\n" + (body ?? "")).utf8)
        var sent = 0
        while sent < request.count {
            let count = unsafe request.withUnsafeBytes { raw in
                unsafe send(descriptor, raw.baseAddress.map { unsafe $0 + sent }, request.count - sent, 0)
            }
            guard count > 0 else { throw Failure(description: "\(authority) does not accept the request") }
            sent += count
        }
        return try Self.parse(Self.readAll(descriptor), authority)
    }

    private static func readAll(_ descriptor: Int32) -> [UInt8] {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = unsafe recv(descriptor, &buffer, buffer.count, 0)
            guard count > 0 else { return bytes }
            bytes.append(contentsOf: buffer[..<count])
        }
    }

    private static func parse(_ bytes: [UInt8], _ authority: String) throws(Failure) -> (status: Int, body: [UInt8]) {
        let end = Array("\r\n\r\n".utf8)
        guard bytes.count > 12, let status = Int(String(decoding: bytes[9..<12], as: UTF8.self)),
            let split = bytes.indices.first(where: { bytes[$0...].starts(with: end) })
        else { throw Failure(description: "\(authority) does not answer like larder-server") }
        return (status, Array(bytes[(split + 4)...]))
    }
}
