import Glibc

/// Sends the same bytes repeatedly over a blocking socket, and reads as many bytes as the first reply had.
struct BareClient {
    private let descriptor: Int32
    private let request: [UInt8]
    private let replyBytes: Int

    struct Failure: Error {}

    /// - Parameter url: `http://ADDRESS:PORT/PATH` with an IPv4 address.
    init(_ url: String) throws {
        let rest = url.dropFirst("http://".count)
        let authority = rest.prefix { $0 != "/" }
        let parts = authority.split(separator: ":")
        guard url.hasPrefix("http://"), parts.count == 2, let port = UInt16(parts[1]) else { throw Failure() }
        request = Array("GET \(rest.dropFirst(authority.count)) HTTP/1.1\r\nHost: \(authority)\r\n\r\n".utf8)
        let made = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        inet_pton(AF_INET, String(parts[0]), &address.sin_addr)
        let isConnected = withUnsafeBytes(of: &address) { raw in
            connect(made, raw.assumingMemoryBound(to: sockaddr.self).baseAddress, socklen_t(raw.count)) == 0
        }
        guard isConnected else { throw Failure() }
        descriptor = made
        // The first reply determines the size of all.
        guard send(made, request, request.count, 0) == request.count else { throw Failure() }
        var reply: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(made, &buffer, buffer.count, 0)
            guard count > 0 else { throw Failure() }
            reply += buffer[..<count]
            let text = String(decoding: reply, as: UTF8.self)
            guard let end = text.range(of: "\r\n\r\n"), let field = text.lowercased().range(of: "content-length: "),
                let length = Int(text[field.upperBound...].prefix { $0.isNumber })
            else { continue }
            let whole = text[..<end.upperBound].utf8.count + length
            if reply.count >= whole {
                replyBytes = whole
                break
            }
        }
    }

    func run(_ count: Int) throws {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        for _ in 0..<count {
            guard send(descriptor, request, request.count, 0) == request.count else { throw Failure() }
            var left = replyBytes
            while left > 0 {
                let got = recv(descriptor, &buffer, buffer.count, 0)
                guard got > 0 else { throw Failure() }
                left -= got
            }
        }
    }
}

extension String {
    /// The first occurrence of a text, without Foundation.
    fileprivate func range(of text: String) -> Range<String.Index>? { firstRange(of: text) }
}
