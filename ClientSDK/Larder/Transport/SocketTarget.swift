import Foundation

/// Where an `http` request goes, taken from its URL (RFC 9110 §4.2.1, RFC 9112 §3.2).
struct SocketTarget: Sendable, Hashable {
    /// What connections are kept for.
    struct Origin: Sendable, Hashable {
        /// The host in lower case, as it is looked up: an IPv6 address has no brackets.
        let host: String
        let port: Int
    }

    let origin: Origin
    /// What stands in `Host`.
    let authority: String
    /// What stands in the request line.
    let path: String

    /// - Throws: `.invalidURL` for everything but an absolute `http` URL without a user's name.
    init(_ url: String) throws(TransportError) {
        // Foundation percent-encodes what people type; it takes its time, and most URLs do not need it.
        if let target = SocketTarget(encoded: url)
            ?? URL(string: url).flatMap({ SocketTarget(encoded: $0.absoluteString) })
        {
            self = target
        } else {
            throw TransportError(
                .invalidURL,
                "«\(ShownURL.text(url))» is not an absolute http URL without a user's name. For https take HTTPTransport of LarderURLSession."
            )
        }
    }

    private init?(encoded text: String) {
        let bytes = Array(text.utf8)
        let scheme = "http://".utf8
        guard bytes.count > scheme.count, zip(bytes, scheme).allSatisfy({ $0 | 0x20 == $1 | 0x20 }),
            bytes.allSatisfy(Self.isOfURL)
        else { return nil }
        let rest = bytes[scheme.count...]
        let end = rest.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") }
        guard let (host, port) = Self.place(rest[..<(end ?? rest.endIndex)]) else { return nil }
        origin = Origin(host: host, port: port)
        let shown = host.contains(":") ? "[\(host)]" : host
        authority = port == 80 ? shown : "\(shown):\(port)"
        let target = rest[(end ?? rest.endIndex)...].prefix { $0 != UInt8(ascii: "#") }
        let path = String(decoding: target, as: UTF8.self)
        self.path = target.first == UInt8(ascii: "/") ? path : "/" + path
    }

    /// What need not be encoded (RFC 3986 §2), and what many servers take as it is.
    private static func isOfURL(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "\\"), UInt8(ascii: "^"),
            UInt8(ascii: "`"), UInt8(ascii: "{"), UInt8(ascii: "|"), UInt8(ascii: "}"):
            false
        default: byte > 0x20 && byte < 0x7F
        }
    }

    private static func place(_ bytes: ArraySlice<UInt8>) -> (host: String, port: Int)? {
        let isBracketed = bytes.first == UInt8(ascii: "[")
        let hostEnd: Int
        if isBracketed {
            guard let bracket = bytes.firstIndex(of: UInt8(ascii: "]")) else { return nil }
            hostEnd = bracket + 1
        } else {
            hostEnd = bytes.firstIndex(of: UInt8(ascii: ":")) ?? bytes.endIndex
        }
        let host = isBracketed ? bytes[..<hostEnd].dropFirst().dropLast() : bytes[..<hostEnd]
        guard !host.isEmpty, host.allSatisfy({ isBracketed ? isOfAddress($0) : isOfName($0) }) else { return nil }
        var port = 80
        let behind = bytes[hostEnd...]
        if behind.count > 1 {
            let digits = behind.dropFirst()
            guard behind.first == UInt8(ascii: ":"), digits.count <= 5, digits.allSatisfy({ $0 &- 0x30 < 10 }) else {
                return nil
            }
            port = digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
        } else if let colon = behind.first, colon != UInt8(ascii: ":") {
            return nil
        }
        guard (1...65_535).contains(port) else { return nil }
        return (String(decoding: host, as: UTF8.self).lowercased(), port)
    }

    private static func isOfName(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"):
            true
        default: false
        }
    }

    private static func isOfAddress(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "f"), UInt8(ascii: "A")...UInt8(ascii: "F"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: ":"), UInt8(ascii: "."):
            true
        default: false
        }
    }
}
