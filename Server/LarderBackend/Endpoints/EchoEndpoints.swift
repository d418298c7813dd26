import LarderCoding
package import LarderEngine
import LarderHTTP
import Synchronization

/// `/_larder/echo`: returns each request and each WebSocket message. Conformance suites use it.
package enum EchoEndpoints {
    package static let path: StaticString = "/_larder/echo"

    package static func answer(_ request: Request) -> Reply {
        if request.isWebSocketUpgrade {
            return .webSocket(WebSocketAcceptance(handler: EchoWebSocket(), subprotocols: request.offeredSubprotocols))
        }
        var writer = JSONWriter(capacity: 1_024)
        writer.beginObject()
        writer.key("method")
        writer.string(request.method.rawValue)
        writer.key("target")
        writer.string(request.targetText)
        writer.key("httpVersion")
        writer.string(request.minorVersion == 0 ? "1.0" : "1.1")
        writer.key("fields")
        writer.beginArray()
        // Pages of any origin can read the reply: it has no credentials of the browser.
        for field in request.fields.all where !["cookie", "authorization"].contains(field.name.lowercased()) {
            writer.beginObject()
            writer.key("name")
            writer.string(field.name)
            writer.key("value")
            writer.string(field.value)
            writer.endObject()
        }
        writer.endArray()
        writer.key("body")
        if let text = String(validating: request.body, as: UTF8.self) {
            writer.string(text)
        } else {
            writer.null()
            writer.key("bodyBase64")
            writer.string(Base64.encode(request.body))
        }
        writer.endObject()
        let fields: Fields = [.contentType: "application/json", .cacheControl: "no-store"]
        return Reply(status: .ok, fields: fields, body: .bytes(writer.bytes))
    }
}

/// Echoes every message.
final class EchoWebSocket: WebSocketHandler {
    private let handle = Mutex<WebSocketHandle?>(nil)

    func opened(_ handle: WebSocketHandle) { self.handle.withLock { $0 = handle } }

    func received(text: [UInt8]) { handle.withLock { $0 }?.send(text: text) }

    func received(binary: [UInt8]) { handle.withLock { $0 }?.send(binary: binary) }

    func closed(_ ending: WebSocketEnding) { handle.withLock { $0 = nil } }
}
