import LarderEngine
import LarderHTTP

/// Translates URLs of another server into URLs of the proxy in front of it, so that a redirect does not lead past the proxy.
struct ProxyLocation {
    /// Host and port of the server, in normal form.
    private let authority: String
    /// The path of the server's URL that precedes the path of each request; empty for none.
    private let basePath: String
    /// That of the server's URL.
    private let scheme: HTTPURL.Scheme
    private let request: Request

    init(authority: String, isSecure: Bool = false, basePath: String, for request: Request) {
        self.authority = authority
        scheme = isSecure ? .https : .http
        self.basePath = basePath
        self.request = request
    }

    /// Scheme, host and port of the proxy as the client knows them; empty if it named no host.
    private var origin: String {
        let scheme = request.isSecure ? "https://" : "http://"
        return (request.targetAuthority ?? request.fields[.host]).map { scheme + $0 } ?? ""
    }

    /// The part of the path that names the world; empty for none.
    private var worldPath: String { String(decoding: request.droppedPrefix, as: UTF8.self) }

    /// The translation of a field value; nil if it stays as it is, because it names another server, a path outside of the
    /// server's URL, or a relative path.
    func translate(_ value: ArraySlice<UInt8>) -> [UInt8]? {
        guard let text = String(validating: value, as: UTF8.self) else { return nil }
        if text.hasPrefix("/"), !text.hasPrefix("//") {
            guard !basePath.isEmpty || !worldPath.isEmpty, let path = withoutBasePath(text[...]) else { return nil }
            return Array((worldPath + path).utf8)
        }
        guard let url = HTTPURL(text.hasPrefix("//") ? "\(scheme):" + text : text, schemes: [scheme]),
            url.userInfo == nil,
            url.authority == authority, let slashes = text.firstRange(of: "//")
        else { return nil }
        let rest = text[slashes.upperBound...].drop { !"/?#".contains($0) }
        guard let path = withoutBasePath(rest.hasPrefix("/") ? rest : "/" + rest) else { return nil }
        return Array((origin + worldPath + path).utf8)
    }

    /// The path behind the server's own; nil if it is outside.
    private func withoutBasePath(_ path: Substring) -> String? {
        guard path.hasPrefix(basePath) else { return nil }
        let rest = path.dropFirst(basePath.count)
        if rest.isEmpty || rest.hasPrefix("?") || rest.hasPrefix("#") { return "/" + rest }
        return rest.hasPrefix("/") ? String(rest) : nil
    }
}
