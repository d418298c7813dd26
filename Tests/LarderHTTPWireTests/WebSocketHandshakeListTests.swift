import LarderHTTPWire
import TestSupport
import Testing

@Suite("WebSocket handshake, lists", .oneMinute)
struct WebSocketHandshakeListTests {
    private func fields(_ upgrade: String, _ connection: String) -> (StaticString) -> String? {
        { name in
            switch "\(name)" {
            case "upgrade": upgrade
            case "connection": connection
            case "sec-websocket-version": "13"
            case "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ=="
            default: nil
            }
        }
    }

    @Test func `the client's first supported subprotocol is selected`() {
        func chosen(_ offered: String?, _ supported: String...) -> String? {
            WebSocketHandshake.subprotocol(offered: offered, supported: supported)
        }
        #expect(chosen("a, b", "b", "a") == "a")
        #expect(chosen("  x ,\tb\t, a", "a", "b") == "b")
        #expect(chosen(",, a,", "a") == "a")
        #expect(chosen("A", "a") == nil && chosen(nil, "a") == nil && chosen("", "a") == nil && chosen("a") == nil)
    }

    @Test func `a subprotocol name with an inner blank matches nothing`() {
        #expect(WebSocketHandshake.subprotocol(offered: "a b", supported: ["ab"]) == nil)
        #expect(WebSocketHandshake.subprotocol(offered: "lar der, ab", supported: ["larder", "ab"]) == "ab")
        #expect(!WebSocketHandshake.isUpgrade(fields("web socket", "Upgrade")))
        #expect(!WebSocketHandshake.isUpgrade(fields("websocket", "up grade")))
    }

    @Test(arguments: [
        ("websocket", "Upgrade", true), ("WebSocket", "keep-alive, UPGRADE", true),
        (" h2c , websocket ", "\tupgrade ", true),
        ("websocket/13", "Upgrade", false), ("websocket", "close", false), ("websockets", "Upgrade", false),
    ])
    func `an upgrade requires both Upgrade and Connection`(upgrade: String, connection: String, isOne: Bool) {
        #expect(WebSocketHandshake.isUpgrade(fields(upgrade, connection)) == isOne)
    }
}
