/// An absolute `http`, `https`, `ws` or `wss` URL in normal form (RFC 3986 §6.2): scheme and host in lower case, no default
/// port, no fragment, no empty path.
///
/// Paths and queries are kept byte by byte: only the server knows which spellings of a path are equal.
package struct HTTPURL: Sendable, Hashable {
    package enum Scheme: String, Sendable {
        case http, https, ws, wss

        package var isSecure: Bool { self == .https || self == .wss }

        /// RFC 9110 §4.2, RFC 6455 §3.
        package var defaultPort: Int { isSecure ? 443 : 80 }
    }

    package let scheme: Scheme
    /// The text between the scheme and the host's `@`; nil without `@`.
    package let userInfo: String?
    /// The host and, unless it is the default, the port: the value of `Host`. An IPv6 address is in brackets.
    package let authority: String
    package let port: Int
    /// Begins with `/`.
    package let path: String
    /// The part after `?`; nil without `?`.
    package let query: String?

    /// Scheme, user information, host and port.
    package var origin: String { "\(scheme.rawValue)://\(userInfo.map { $0 + "@" } ?? "")\(authority)" }

    package var text: String { origin + target }

    /// Path and query: the target of a request in origin form (RFC 9112 §3.2.1).
    package var target: String { query.map { "\(path)?\($0)" } ?? path }

    /// The host in lower case; an IPv6 address without its brackets.
    package var host: String {
        if authority.hasPrefix("[") { return String(authority.dropFirst().prefix { $0 != "]" }) }
        return String(authority.prefix { $0 != ":" })
    }

    /// Whether the host is this machine, which is reachable without a network interface.
    package var isLocal: Bool {
        host == "localhost" || host == "::1" || host.hasPrefix("127.") && host.allSatisfy { $0.isNumber || $0 == "." }
    }

    /// Whether the URL can be sent as it is: the host is a name or an address, and no byte needs percent-encoding (RFC 3986 §2).
    /// Square brackets are tolerated, because many servers accept them.
    package var isEncoded: Bool {
        let isAddress = authority.hasPrefix("[")
        return host.utf8.allSatisfy(isAddress ? Self.isAddressByte : Self.isNameByte)
            && target.utf8.allSatisfy(Self.isURLByte)
    }

    /// Parses an absolute URL.
    ///
    /// - Returns: nil if the scheme is not one of `schemes`, the host is missing, the port is not in 1…65535, or the text contains
    ///   a space or a control character.
    package init?(_ text: String, schemes: [Scheme] = [.http, .https]) {
        let bytes = Array(text.utf8)
        guard bytes.allSatisfy(Self.isVisible), let colon = bytes.firstIndex(of: UInt8(ascii: ":")),
            let scheme = Scheme(rawValue: String(decoding: bytes[..<colon], as: UTF8.self).lowercased()),
            schemes.contains(scheme), bytes[(colon + 1)...].starts(with: "//".utf8)
        else { return nil }
        let rest = bytes[(colon + 3)...]
        let end = rest.firstIndex { [UInt8(ascii: "/"), UInt8(ascii: "?"), UInt8(ascii: "#")].contains($0) }
        let whole = rest[..<(end ?? rest.endIndex)]
        let at = whole.lastIndex(of: UInt8(ascii: "@"))
        guard let (host, port) = Self.hostAndPort(at.map { whole[($0 + 1)...] } ?? whole, scheme.defaultPort) else {
            return nil
        }
        self.scheme = scheme
        userInfo = at.map { String(decoding: whole[..<$0], as: UTF8.self) }
        authority = port == scheme.defaultPort ? host : "\(host):\(port)"
        self.port = port
        let target = rest[(end ?? rest.endIndex)...].prefix { $0 != UInt8(ascii: "#") }
        let mark = target.firstIndex(of: UInt8(ascii: "?")) ?? target.endIndex
        let path = String(decoding: target[..<mark], as: UTF8.self)
        self.path = path.isEmpty ? "/" : path
        query = mark < target.endIndex ? String(decoding: target[(mark + 1)...], as: UTF8.self) : nil
    }

    private init(_ base: HTTPURL, path: String, query: String?) {
        scheme = base.scheme
        userInfo = base.userInfo
        authority = base.authority
        port = base.port
        self.path = path
        self.query = query
    }

    private static func hostAndPort(_ bytes: ArraySlice<UInt8>, _ defaultPort: Int) -> (host: String, port: Int)? {
        // The colons of an IPv6 address come before its closing bracket.
        let bracket = bytes.lastIndex(of: UInt8(ascii: "]")) ?? bytes.startIndex
        let colon = bytes[bracket...].lastIndex(of: UInt8(ascii: ":")) ?? bytes.endIndex
        let host = String(decoding: bytes[..<colon], as: UTF8.self).lowercased()
        let isAddress = host.hasPrefix("[") && host.hasSuffix("]")
        let name = isAddress ? host.dropFirst().dropLast() : host[...]
        guard !name.isEmpty, !name.contains(where: { $0 == "[" || $0 == "]" || ($0 == ":" && !isAddress) }) else {
            return nil
        }
        let digits = bytes[colon...].dropFirst()
        guard !digits.isEmpty else { return (host, defaultPort) }
        guard digits.count <= 5, digits.allSatisfy({ $0 &- UInt8(ascii: "0") < 10 }) else { return nil }
        let port = digits.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
        return (1...65_535).contains(port) ? (host, port) : nil
    }

    /// Resolves a reference in a field of a response from this URL (RFC 3986 §5.2); nil if the result is not `http` or `https`.
    package func resolve(_ reference: String) -> HTTPURL? {
        let text = String(reference.prefix { $0 != "#" })
        if let absolute = HTTPURL(text) { return absolute }
        let hasScheme = text.prefix { $0 != "/" && $0 != "?" }.contains(":")
        guard !hasScheme, text.utf8.allSatisfy(Self.isVisible) else { return nil }
        if text.hasPrefix("//") { return HTTPURL("\(scheme.rawValue):\(text)") }
        if text.isEmpty { return self }
        let parts = text.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        let query = parts.count == 2 ? String(parts[1]) : nil
        if parts[0].isEmpty { return HTTPURL(self, path: path, query: query) }
        let folder = path[..<(path.lastIndex(of: "/").map { path.index(after: $0) } ?? path.endIndex)]
        let whole = parts[0].hasPrefix("/") ? String(parts[0]) : String(folder + parts[0])
        return HTTPURL(self, path: Self.removingDotSegments(whole), query: query)
    }

    /// RFC 3986 §5.2.4.
    private static func removingDotSegments(_ path: String) -> String {
        var kept: [Substring] = []
        let segments = path.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
        for (index, segment) in segments.enumerated() {
            let isLast = index == segments.count - 1
            switch segment {
            case ".": if isLast { kept.append("") }
            case "..":
                _ = kept.popLast()
                if isLast { kept.append("") }
            default: kept.append(segment)
            }
        }
        return "/" + kept.joined(separator: "/")
    }

    private static func isVisible(_ byte: UInt8) -> Bool { byte > 0x20 && byte != 0x7F }

    private static func isURLByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "\\"), UInt8(ascii: "^"),
            UInt8(ascii: "`"), UInt8(ascii: "{"), UInt8(ascii: "|"), UInt8(ascii: "}"):
            false
        default: byte > 0x20 && byte < 0x7F
        }
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"):
            true
        default: false
        }
    }

    private static func isAddressByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "f"), UInt8(ascii: "A")...UInt8(ascii: "F"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: ":"), UInt8(ascii: "."):
            true
        default: false
        }
    }
}

extension HTTPURL {
    /// The URL for errors and logs: user information (RFC 3986 §3.2.1) is replaced by an ellipsis. Works for any text.
    package static func redacted(_ url: String) -> String {
        guard let slashes = url.firstRange(of: "//") else { return url }
        let authority = url[slashes.upperBound...].prefix { !"/?#".contains($0) }
        guard let at = authority.lastIndex(of: "@") else { return url }
        return url[..<slashes.upperBound] + "…" + url[at...]
    }
}
