import LarderEngine

/// One change for all readers with the same view, encoded once for each kind of channel.
package struct LiveEvent: Sendable {
    /// The token of this change.
    package let token: String
    /// `{"token":…,"previousToken":…,"change":{…}}`
    package let json: [UInt8]
    /// The same as a WebSocket text frame.
    package let frame: [UInt8]
    /// The same as a Server-Sent Event whose `id` is the token.
    package let serverSentEvent: [UInt8]

    /// - Parameter previous: The token of the event that these readers were sent before, or should have been. A reader with
    ///   another token has missed an event.
    init(token: String, previous: String, change: [UInt8]) {
        let tokens = #"{"token":"\#(token)","previousToken":"\#(previous)","change":"#
        self.init(token, Array(tokens.utf8) + change + [UInt8(ascii: "}")])
    }

    private init(_ token: String, _ json: [UInt8]) {
        self.token = token
        self.json = json
        frame = WebSocketEncoder.frame(.text, json)
        serverSentEvent = Self.serverSentEvent(named: "change", id: token, data: json)
    }

    /// The event for a reader that addresses the world by this path.
    func addressing(_ basePath: String) -> LiveEvent {
        basePath.isEmpty ? self : LiveEvent(token, ImageLinks.addressing(basePath, in: json))
    }

    /// Encodes a server-sent event (HTML standard, event stream format); the data is one line.
    package static func serverSentEvent(named name: StaticString, id: String, data: [UInt8]) -> [UInt8] {
        Array("id: \(id)\nevent: \(name)\ndata: ".utf8) + data + Array("\n\n".utf8)
    }
}
