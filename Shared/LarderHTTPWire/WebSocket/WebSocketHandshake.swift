import LarderCoding

/// The opening handshake (RFC 6455 §4).
package enum WebSocketHandshake {
    /// Why an upgrade is rejected.
    package enum Rejection: Error, Sendable, Hashable {
        /// The request is not a WebSocket upgrade.
        case notAnUpgrade
        /// The version is not 13: answer 426 and name 13.
        case version
        /// The key is not 16 bytes in Base64.
        case key
    }

    /// The value of `Sec-WebSocket-Accept` for a key.
    package static func accept(forKey key: String) -> String {
        Base64.encode(SHA1.hash(Array((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8)))
    }

    /// Checks a request's fields and returns the value of `Sec-WebSocket-Accept`.
    ///
    /// - Parameter field: returns a field's combined value by its name in lower case.
    package static func accept(_ field: (StaticString) -> String?) throws(Rejection) -> String {
        guard isUpgrade(field) else { throw .notAnUpgrade }
        guard field("sec-websocket-version") == "13" else { throw .version }
        guard let key = field("sec-websocket-key"), Base64.decode(key)?.count == 16 else { throw .key }
        return accept(forKey: key)
    }

    /// Whether a request is a WebSocket upgrade.
    package static func isUpgrade(_ field: (StaticString) -> String?) -> Bool {
        list(field("upgrade")).contains("websocket") && list(field("connection")).contains("upgrade")
    }

    /// The first subprotocol that both sides support, in the client's order of preference.
    package static func subprotocol(offered: String?, supported: [String]) -> String? {
        elements(offered).first { supported.contains($0) }
    }

    private static func list(_ value: String?) -> [String] { elements(value?.lowercased()) }

    /// The elements of a list (RFC 9110 §5.6.1) without surrounding blanks. Blanks inside an element stay: it is not a token
    /// then and matches nothing.
    package static func elements(_ value: String?) -> [String] {
        (value ?? "").split(separator: ",").compactMap { element in
            var text = element.drop { $0 == " " || $0 == "\t" }
            while text.last == " " || text.last == "\t" { text.removeLast() }
            return text.isEmpty ? nil : String(text)
        }
    }
}
