import LarderCoding
package import LarderEngine
import LarderHTTP
import Synchronization

/// `/_larder/echo`: returns each request and each WebSocket message. Conformance suites use it.
package enum EchoEndpoints {
    package static let path = Array("/_larder/echo".utf8)

    package static func answer(_ request: Request) -> Reply {
        if request.isWebSocketUpgrade {
            return .webSocket(WebSocketAcceptance(handler: EchoWebSocket(), subprotocols: request.offeredSubprotocols))
        }
        // Pages of any origin can read the reply: it has no credentials of the browser.
        let fieldLines = request.fields.all.filter { !["cookie", "authorization"].contains($0.name.lowercased()) }
        let text = String(validating: request.body, as: UTF8.self)
        let body = JSONValue.members([
            "method": .string(request.method.rawValue), "target": .string(request.targetText),
            "httpVersion": .string(request.minorVersion == 0 ? "1.0" : "1.1"),
            "fields": .array(fieldLines.map { .members(["name": .string($0.name), "value": .string($0.value)]) }),
            "body": text.map { .string($0) } ?? .null,
            "bodyBase64": text == nil ? .string(Base64.encode(request.body)) : nil,
        ]).encoded
        let fields: Fields = [.contentType: "application/json", .cacheControl: "no-store"]
        return Reply(status: .ok, fields: fields, body: .bytes(body))
    }
}

/// Echoes every message.
final class EchoWebSocket: ChannelHandler {
    private let handle = Mutex<ChannelHandle?>(nil)

    func opened(_ handle: ChannelHandle) { self.handle.withLock { $0 = handle } }

    func received(text: [UInt8]) { handle.withLock { $0 }?.send(text: text) }

    func received(binary: [UInt8]) { handle.withLock { $0 }?.send(binary: binary) }

    func closed(_ ending: WebSocketEnding) { handle.withLock { $0 = nil } }
}
