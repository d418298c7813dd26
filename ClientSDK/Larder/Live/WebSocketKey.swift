import LarderCoding
import LarderWebSocket

/// The proof that a server speaks WebSocket (RFC 6455 §1.3).
package enum WebSocketKey {
    /// What `Sec-WebSocket-Accept` must say to a key.
    package static func accept(_ key: String) -> String { WebSocketHandshake.accept(forKey: key) }
}
