import LarderCoding
import LarderHTTP

/// The opening handshake (RFC 6455 §4).
package enum WebSocketHandshake {
    package static let notAnUpgrade = Rejection(.badRequest, "The request is not a WebSocket upgrade.")

    /// The value of `Sec-WebSocket-Accept` for a key.
    package static func accept(forKey key: String) -> String {
        Base64.encode(SHA1.hash(Array((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8)))
    }

    /// Checks a request's fields and returns the value of `Sec-WebSocket-Accept`.
    ///
    /// - Parameter field: returns a field's combined value by its name in lower case.
    /// - Throws: for another version 426, whose reply must name version 13.
    package static func accept(_ field: (StaticString) -> String?) throws(Rejection) -> String {
        guard isUpgrade(field) else { throw notAnUpgrade }
        guard field("sec-websocket-version") == "13" else {
            throw Rejection(.upgradeRequired, "Only version 13 of the WebSocket protocol is supported.")
        }
        guard let key = field("sec-websocket-key"), Base64.decode(key)?.count == 16 else {
            throw Rejection(.badRequest, "Sec-WebSocket-Key must be 16 bytes in Base64.")
        }
        return accept(forKey: key)
    }

    /// Whether a request is a WebSocket upgrade.
    package static func isUpgrade(_ field: (StaticString) -> String?) -> Bool {
        list(field("upgrade")).contains("websocket") && list(field("connection")).contains("upgrade")
    }

    /// The first subprotocol that both sides support, in the client's order of preference.
    package static func subprotocol(offered: String?, supported: [String]) -> String? {
        FieldList.members(of: offered ?? "").first { supported.contains($0) }
    }

    private static func list(_ value: String?) -> [String] { FieldList.members(of: value?.lowercased() ?? "") }
}
