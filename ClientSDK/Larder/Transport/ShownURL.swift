/// URLs as they may be told in errors and logs.
package enum ShownURL {
    /// The URL without whatever name and password stand before its host (RFC 3986 §3.2.1), which are nobody's business.
    package static func text(_ url: String) -> String {
        guard let slashes = url.firstRange(of: "//") else { return url }
        let authority = url[slashes.upperBound...].prefix { !"/?#".contains($0) }
        guard let at = authority.lastIndex(of: "@") else { return url }
        return url[..<slashes.upperBound] + "…" + url[at...]
    }
}
