package import LarderHTTP

/// The reply to an exchange: its head, and its body or what the connection becomes. The engine adds `Date` and `Connection`.
package struct Reply: Sendable {
    package enum Body: Sendable {
        case bytes([UInt8])
        /// The connection becomes a WebSocket if the request is a valid upgrade (RFC 6455). The engine writes the head.
        case webSocket(WebSocketAcceptance)
        /// A stream of Server-Sent Events; the head has `Content-Type`, and the engine adds the framing.
        case eventStream(any ChannelHandler)
        /// The connection passes bytes to and from another server, which has accepted an upgrade. The head is a 101.
        case tunnel(TunnelEnd)

        package static let empty = Body.bytes([])

        /// The number of bytes; 0 if it is not known, because the connection becomes something else.
        package var count: Int { if case .bytes(let bytes) = self { bytes.count } else { 0 } }
    }

    /// The head, with `Content-Length` if the status has content.
    package var head: ReplyHead
    package var body: Body
    /// A complete `Date` line that replaces the server's own; empty sends none.
    package var date: [UInt8]?
    /// The bytes that a content coding has taken off the body.
    package var bytesSavedByCoding = 0
    /// Released when the reply is written, or its connection is closed: for what is limited while replies wait for their readers.
    package var lease: (any AnyObject & Sendable)?
    /// Sends the content of an event stream or a WebSocket; nil: it is sent at once.
    package var pacer: (any ChannelPacer)?

    package var status: Status { head.status }

    /// A reply with these fields and the length of its body.
    package init(status: Status, fields: Fields = Fields(), body: Body = .empty) {
        self.init(ReplyHead(status, fields), body: body)
        // A 304 could only state the length of the corresponding 200, which is not known here (RFC 9110 §8.6).
        if !status.hasNoContent { head.append("Content-Length", "\(body.count)") }
    }

    package init(_ head: ReplyHead, body: Body, bytesSavedByCoding: Int = 0) {
        self.head = head
        self.body = body
        self.bytesSavedByCoding = bytesSavedByCoding
    }

    package static func webSocket(_ acceptance: WebSocketAcceptance) -> Reply {
        Reply(.none, body: .webSocket(acceptance))
    }

    package static func eventStream(_ fields: Fields, _ handler: any ChannelHandler) -> Reply {
        var head = ReplyHead(.ok)
        head.append("Content-Type", "text/event-stream")
        head.append(fields)
        return Reply(head, body: .eventStream(handler))
    }

    /// The bytes of a body in memory; empty for every other body.
    package var bytes: [UInt8] { if case .bytes(let bytes) = body { bytes } else { [] } }

    /// The reply with further complete field lines.
    package func adding(_ lines: [UInt8]) -> Reply {
        guard !lines.isEmpty else { return self }
        var changed = self
        changed.head.append(lines: lines)
        return changed
    }

    /// The reply for a handler that sends it itself: with a `Date` line, and with the body in memory, which is empty if `request` allows
    /// none; nil for a WebSocket, an event stream or a tunnel.
    package func whole(for request: Request, date line: [UInt8]) -> Reply? {
        guard case .bytes = body else { return nil }
        var whole = self
        whole.head.append(lines: date ?? line)
        if request.method == .head || status.hasNoContent { (whole.body, whole.bytesSavedByCoding) = (.empty, 0) }
        return whole
    }
}
