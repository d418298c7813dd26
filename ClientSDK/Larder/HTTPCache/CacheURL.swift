/// A URL as the cache compares it: scheme and host in lower case, no default port, no fragment, no empty path (RFC 3986 §6.2).
///
/// Everything else is compared byte by byte: what two spellings of a path mean is the server's business.
struct CacheURL: Sendable, Hashable {
    /// `https://host:port`, and with it whatever user information there was.
    let origin: String
    /// The path, which begins with `/`.
    let path: String
    /// What stands behind the `?`; nil where there is none.
    let query: String?

    /// The whole, under which responses are stored.
    var text: String { origin + target }

    /// Path and query.
    var target: String { query.map { "\(path)?\($0)" } ?? path }

    /// The host in lower case, with a port that is not the scheme's.
    var authority: String { String(origin.drop { $0 != "/" }.dropFirst(2)) }

    /// Reads an absolute URL; nil for one that is not `http` or `https`, has no host, or has bytes that no URL has.
    init?(_ text: String) {
        let bytes = Array(text.utf8)
        guard bytes.allSatisfy({ $0 > 0x20 && $0 != 0x7F }), let colon = bytes.firstIndex(of: UInt8(ascii: ":")) else {
            return nil
        }
        let scheme = String(decoding: bytes[..<colon], as: UTF8.self).lowercased()
        let defaultPort: String
        switch scheme {
        case "http": defaultPort = "80"
        case "https": defaultPort = "443"
        default: return nil
        }
        let rest = bytes[(colon + 1)...]
        guard rest.starts(with: "//".utf8) else { return nil }
        let behind = rest.dropFirst(2)
        let end = behind.firstIndex { [UInt8(ascii: "/"), UInt8(ascii: "?"), UInt8(ascii: "#")].contains($0) }
        guard let authority = Self.authority(behind[..<(end ?? behind.endIndex)], defaultPort) else { return nil }
        origin = "\(scheme)://\(authority)"
        let target = behind[(end ?? behind.endIndex)...].prefix { $0 != UInt8(ascii: "#") }
        let mark = target.firstIndex(of: UInt8(ascii: "?")) ?? target.endIndex
        let path = String(decoding: target[..<mark], as: UTF8.self)
        self.path = path.isEmpty ? "/" : path
        query = mark < target.endIndex ? String(decoding: target[(mark + 1)...], as: UTF8.self) : nil
    }

    private init(origin: String, path: String, query: String?) {
        self.origin = origin
        self.path = path
        self.query = query
    }

    private static func authority(_ bytes: ArraySlice<UInt8>, _ defaultPort: String) -> String? {
        let at = bytes.lastIndex(of: UInt8(ascii: "@"))
        let user = at.map { String(decoding: bytes[...$0], as: UTF8.self) } ?? ""
        let place = at.map { bytes[($0 + 1)...] } ?? bytes
        // The colons of an IPv6 address stand before its bracket.
        let bracket = place.lastIndex(of: UInt8(ascii: "]")) ?? place.startIndex
        let colon = place[bracket...].lastIndex(of: UInt8(ascii: ":")) ?? place.endIndex
        let host = String(decoding: place[..<colon], as: UTF8.self).lowercased()
        let port = String(decoding: place[colon...].dropFirst(), as: UTF8.self)
        // Colons and brackets are an address's alone.
        let isAddress = host.hasPrefix("[") && host.hasSuffix("]")
        let name = isAddress ? host.dropFirst().dropLast() : host[...]
        guard !name.isEmpty, !name.contains(where: { $0 == "[" || $0 == "]" || ($0 == ":" && !isAddress) }),
            port.utf8.allSatisfy({ $0 &- UInt8(ascii: "0") < 10 })
        else { return nil }
        return user + host + (port.isEmpty || port == defaultPort ? "" : ":\(port)")
    }

    /// What a reference in a field of a response from this URL names (RFC 3986 §5.2); nil for what is no web address.
    func resolve(_ reference: String) -> CacheURL? {
        let text = String(reference.prefix { $0 != "#" })
        if let absolute = CacheURL(text) { return absolute }
        let isSchemed = text.prefix { $0 != "/" && $0 != "?" }.contains(":")
        guard !isSchemed, text.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else { return nil }
        if text.hasPrefix("//") { return CacheURL("\(origin.prefix { $0 != "/" })\(text)") }
        if text.isEmpty { return self }
        let parts = text.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        let query = parts.count == 2 ? String(parts[1]) : nil
        if parts[0].isEmpty { return CacheURL(origin: origin, path: path, query: query) }
        let folder = path[..<(path.lastIndex(of: "/").map { path.index(after: $0) } ?? path.endIndex)]
        let whole = parts[0].hasPrefix("/") ? String(parts[0]) : String(folder + parts[0])
        return CacheURL(origin: origin, path: Self.withoutDots(whole), query: query)
    }

    /// A path without `.` and `..` (RFC 3986 §5.2.4).
    private static func withoutDots(_ path: String) -> String {
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
}
