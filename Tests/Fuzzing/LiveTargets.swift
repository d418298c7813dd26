import LarderHTTP

@testable import LarderHTTPWire
@testable import LarderTransport

private func frames(_ pieces: [ArraySlice<UInt8>], _ role: WebSocketRole) -> [WebSocketEvent] {
    var parser = WebSocketParser(role: role, messageBytesMaximum: 2_048)
    var events: [WebSocketEvent] = []
    for piece in pieces { parser.receive(Array(piece).span, &events) }
    return events
}

/// Frames from a client and from a server; the events of a stream, encoded again, are the same events.
func fuzzWebSocket(_ bytes: [UInt8]) {
    for role in [WebSocketRole.server, .client] {
        let events = frames([bytes[...]], role)
        requireEqual(events, frames(pieces(bytes), role), "Pieces give other events.")
        var coded: [UInt8] = []
        let mask: UInt32? = role == .server ? 0xA1B2_03F4 : nil
        for event in events {
            switch event {
            case .text(let payload):
                require(payload.count <= 2_048 && String(validating: payload, as: UTF8.self) != nil, "A text is wrong.")
                WebSocketEncoder.append(.text, payload, mask: mask, to: &coded)
            case .binary(let payload): WebSocketEncoder.append(.binary, payload, mask: mask, to: &coded)
            case .ping(let payload): WebSocketEncoder.append(.ping, payload, mask: mask, to: &coded)
            case .pong(let payload): WebSocketEncoder.append(.pong, payload, mask: mask, to: &coded)
            case .close(let code, let reason):
                WebSocketEncoder.append(.close, WebSocketEncoder.closePayload(code, reason), mask: mask, to: &coded)
            case .failed: break
            }
        }
        let sound = events.filter { if case .failed = $0 { false } else { true } }
        requireEqual(sound, frames([coded[...]], role), "The encoder's frames are read differently.")
    }
}

private func upgrade(_ pieces: [ArraySlice<UInt8>]) -> String {
    let upgrade = WebSocketUpgrade(key: [UInt8](repeating: 7, count: 16), subprotocols: ["a", "b"])
    var reader = ResponseReader(.upgrade)
    var events: [ResponseReader.Event] = []
    var rest: [UInt8] = []
    for piece in pieces {
        if reader.isComplete {
            rest += piece
            continue
        }
        do {
            let count = try reader.receive(Array(piece).span, &events)
            rest += piece.dropFirst(count)
        } catch { return "failed" }
    }
    guard case .head(let head)? = events.first else { return "pending" }
    guard head.status == .switchingProtocols else { return "failed" }
    do {
        let chosen = try upgrade.agreed(head)
        return "\(chosen ?? "-") \(head.fields.map { "\($0.name): \($0.value)" }) \(rest)"
    } catch { return "failed" }
}

/// The handshake of a WebSocket: a server's response, and the fields of a client's request.
func fuzzHandshake(_ bytes: [UInt8]) {
    let whole = upgrade([bytes[...]])
    let parts = upgrade(pieces(bytes))
    // A rejection's content may be cut anywhere: whether it is complete is known at different times.
    if whole.hasPrefix("failed") == parts.hasPrefix("failed") {
        requireEqual(whole, parts, "Pieces give another handshake.")
    }
    if let head = try? RequestHead(bytes) {
        let field: (StaticString) -> String? = { name in
            FieldName(name.description).flatMap { head.fields.combined($0) }
        }
        let isUpgrade = WebSocketHandshake.isUpgrade(field)
        if (try? WebSocketHandshake.accept(field)) != nil { require(isUpgrade, "What is accepted is no upgrade.") }
        let offered = head.fields.combined(.secWebSocketProtocol)
        if let chosen = WebSocketHandshake.subprotocol(offered: offered, supported: ["a", "chat"]) {
            require(FieldList.members(of: offered ?? "").contains(chosen), "'\(chosen)' was not offered.")
        }
    }
}

private func events(_ pieces: [ArraySlice<UInt8>]) -> ([EventStream.Event], String, Duration?, isTooLarge: Bool) {
    var parser = EventStreamParser(lastEventID: "9", eventBytesMaximum: 512)
    var events: [EventStream.Event] = []
    do throws(EventStreamParser.TooLarge) {
        for piece in pieces { try parser.receive(Array(piece), &events) }
    } catch { return (events, parser.lastEventID, parser.retry, true) }
    return (events, parser.lastEventID, parser.retry, false)
}

/// Event streams.
func fuzzEvents(_ bytes: [UInt8]) {
    let whole = events([bytes[...]])
    let parts = events(pieces(bytes))
    require(whole == parts, "Pieces give other events:\n    \(whole)\n    \(parts)")
    for event in whole.0 { require(event.data.utf8.count <= 3 * 512, "An event has \(event.data.utf8.count) bytes.") }
}
