import LarderEngine
import LarderWebSocket

/// One change on its way to everyone who sees it alike, encoded once for each kind of channel.
struct LiveEvent: Sendable {
    /// The token of this change.
    let token: String
    /// `{"token":…,"previousToken":…,"change":{…}}`
    let json: [UInt8]
    /// The same as a WebSocket text frame.
    let frame: [UInt8]
    /// The same as a Server-Sent Event whose `id` is the token.
    let serverSentEvent: [UInt8]

    /// - Parameter previous: the token of what these readers were sent (or should have been) before; a reader who holds
    ///   another has missed something.
    init(token: String, previous: String, change: [UInt8]) {
        self.token = token
        var json: [UInt8] = []
        json.reserveCapacity(change.count + 160)
        json.append("{\"token\":\"")
        json.append(contentsOf: token.utf8)
        json.append("\",\"previousToken\":\"")
        json.append(contentsOf: previous.utf8)
        json.append("\",\"change\":")
        json.append(contentsOf: change)
        json.append(UInt8(ascii: "}"))
        self.json = json
        frame = WebSocketEncoder.textFrame(json)
        serverSentEvent = Self.serverSentEvent(named: "change", id: token, data: json)
    }

    /// An event as the HTML standard's event stream format has it; the data is one line.
    static func serverSentEvent(named name: StaticString, id: String, data: [UInt8]) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(data.count + id.utf8.count + 40)
        bytes.append("id: ")
        bytes.append(contentsOf: id.utf8)
        bytes.append("\nevent: ")
        bytes.append(name)
        bytes.append("\ndata: ")
        bytes.append(contentsOf: data)
        bytes.append("\n\n")
        return bytes
    }
}
