import LarderHTTP
import LarderTime

/// A cookie as a client keeps it (RFC 6265 §5.3).
struct Cookie: Sendable {
    /// What a later cookie replaces.
    struct Key: Sendable, Hashable {
        let name: String
        let domain: String
        let path: String
    }

    /// The largest name and value together, in bytes.
    static let bytesMaximum = 4_096
    /// The longest time that a cookie is kept.
    private static let ageMaximum = Duration.seconds(400 * 86_400)

    let key: Key
    let value: String
    /// Whether it is sent to `key.domain` only, and not to its subdomains.
    let isHostOnly: Bool
    let isSecure: Bool
    /// nil: it is kept until the jar is emptied.
    let expiry: WallTime?
    /// The order in which cookies were first stored.
    var ordinal = 0

    /// Reads a `Set-Cookie` field.
    ///
    /// Rejects, with nil: a cookie without a name, too large or with control characters; one for another domain, for a whole top-level
    /// domain, or for more than one address; a secure one from `http`; one whose name promises more (`__Secure-`, `__Host-`) than it has.
    init?(_ field: String, from url: HTTPURL, now: WallTime) {
        guard field.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) else { return nil }
        let parts = field.split(separator: ";", omittingEmptySubsequences: false)
        guard let (name, value) = Self.pair(parts[0]), !name.isEmpty,
            name.utf8.count + value.utf8.count <= Self.bytesMaximum
        else { return nil }
        var attributes: [String: String] = [:]
        for part in parts.dropFirst() {
            let (name, value) = Self.pair(part) ?? (FieldList.trimmed(part), "")
            if value.utf8.count <= 1_024 { attributes[name.lowercased()] = value }
        }
        let host = url.host
        var domain = (attributes["domain"] ?? "").lowercased()[...]
        if domain.hasPrefix(".") { domain = domain.dropFirst() }
        isHostOnly =
            domain.isEmpty
            || domain == host
                && (IPAddress(host) != nil || !domain.contains("."))
        if !isHostOnly {
            guard domain.contains("."), Self.matches(host, String(domain)) else { return nil }
        }
        isSecure = attributes["secure"] != nil
        let path = attributes["path"] ?? ""
        key = Key(
            name: name,
            domain: isHostOnly ? host : String(domain),
            path: path.hasPrefix("/") ? path : Self.folder(of: url.path)
        )
        self.value = value
        if isSecure, !url.scheme.isSecure { return nil }
        let prefix = name.lowercased()
        if prefix.hasPrefix("__secure-"), !isSecure { return nil }
        if prefix.hasPrefix("__host-"), !isSecure || !isHostOnly || attributes["domain"] != nil || path != "/" {
            return nil
        }
        expiry = Self.expiry(attributes, now)
    }

    /// Max-Age comes before Expires; either is ignored if it is malformed.
    private static func expiry(_ attributes: [String: String], _ now: WallTime) -> WallTime? {
        let latest = now + ageMaximum
        if let text = attributes["max-age"], let first = text.utf8.first,
            first == UInt8(ascii: "-") || (0x30...0x39).contains(first),
            text.utf8.dropFirst().allSatisfy({ (0x30...0x39).contains($0) })
        {
            guard first != UInt8(ascii: "-"), let seconds = Int64(text) else {
                return first == UInt8(ascii: "-") ? now : latest
            }
            return min(now + .seconds(min(seconds, 400 * 86_400)), latest)
        }
        return attributes["expires"].flatMap(CookieDate.parse).map { min($0, latest) }
    }

    private static func pair(_ text: Substring) -> (name: String, value: String)? {
        guard let equals = text.firstIndex(of: "=") else { return nil }
        return (FieldList.trimmed(text[..<equals]), FieldList.trimmed(text[text.index(after: equals)...]))
    }

    /// RFC 6265 §5.1.4.
    private static func folder(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/"), slash != path.startIndex else { return "/" }
        return String(path[..<slash])
    }

    /// RFC 6265 §5.1.3.
    private static func matches(_ host: String, _ domain: String) -> Bool {
        host == domain || host.hasSuffix("." + domain) && IPAddress(host) == nil
    }

    /// Whether it is sent with a request to a URL.
    func belongs(to url: HTTPURL) -> Bool {
        guard isHostOnly ? url.host == key.domain : Self.matches(url.host, key.domain) else { return false }
        guard !isSecure || url.scheme.isSecure, url.path.hasPrefix(key.path) else { return false }
        return key.path.hasSuffix("/") || url.path.utf8.count == key.path.utf8.count
            || url.path.dropFirst(key.path.count).hasPrefix("/")
    }

    func isExpired(at now: WallTime) -> Bool { expiry.map { $0 <= now } ?? false }
}
