import Foundation
import LarderHTTP

/// Where a WebSocket is, taken from its URL (RFC 6455 §3).
package struct WebSocketTarget: Sendable, Hashable {
    package let isSecure: Bool
    /// The host as it is looked up: an IPv6 address has no brackets.
    package let host: String
    package let port: Int
    /// What stands in `Host`.
    package let authority: String
    /// What stands in the request line.
    package let path: String

    /// - Throws: `.invalidRequest`, with what is wrong.
    package init(_ url: String) throws(WebSocketError) {
        func fail(_ reason: String) -> WebSocketError {
            WebSocketError(.invalidRequest, "«\(ShownURL.text(url))» \(reason).")
        }
        guard let parts = URLComponents(string: url), let scheme = parts.scheme?.lowercased() else {
            throw fail("is no URL")
        }
        guard scheme == "ws" || scheme == "wss" else { throw fail("begins with neither ws nor wss") }
        guard parts.user == nil, parts.password == nil else { throw fail("carries a name: say it in Authorization") }
        guard parts.fragment == nil else { throw fail("has a fragment, which means nothing to a WebSocket") }
        guard let named = parts.percentEncodedHost?.removingPercentEncoding, !named.isEmpty else {
            throw fail("names no host")
        }
        guard !named.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7F }) else { throw fail("names no host") }
        isSecure = scheme == "wss"
        let isBracketed = named.hasPrefix("[") && named.hasSuffix("]")
        host = isBracketed ? String(named.dropFirst().dropLast()) : named
        let usual = isSecure ? 443 : 80
        port = parts.port ?? usual
        guard (1...65_535).contains(port) else { throw fail("names no port") }
        let shown = host.contains(":") ? "[\(host)]" : host
        authority = port == usual ? shown : "\(shown):\(port)"
        let path = parts.percentEncodedPath.isEmpty ? "/" : parts.percentEncodedPath
        self.path = parts.percentEncodedQuery.map { "\(path)?\($0)" } ?? path
    }

    /// Checks the sub-protocols, which are tokens, each named once.
    package static func check(_ subprotocols: [String]) throws(WebSocketError) {
        for name in subprotocols where FieldName(name) == nil {
            throw WebSocketError(.invalidRequest, "«\(name)» cannot name a sub-protocol: it is no token.")
        }
        guard Set(subprotocols).count == subprotocols.count else {
            throw WebSocketError(.invalidRequest, "A sub-protocol is named twice.")
        }
    }
}
