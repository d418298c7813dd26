package import LarderHTTP

/// The reply to an exchange.
package struct Reply: Sendable {
    package enum Content: Sendable {
        case response(Response)
        /// The connection becomes a WebSocket if the request is a valid upgrade (RFC 6455).
        case webSocket(WebSocketAcceptance)
        /// A stream of Server-Sent Events; the head has `Content-Type`, and the engine adds the framing.
        case eventStream(ReplyHead, any EventStreamHandler)
        /// The connection passes bytes to and from another server, which has accepted an upgrade. The head is a 101.
        case tunnel(ReplyHead, TunnelEnd)
    }

    package var content: Content
    /// A complete `Date` line that replaces the server's own; empty sends none.
    package var date: [UInt8]?
    /// Data of the handler that is returned with the record of the exchange.
    package var note = ExchangeNote()

    package init(_ content: Content) { self.content = content }

    package static func response(_ response: Response) -> Reply { Reply(.response(response)) }

    package static func webSocket(_ acceptance: WebSocketAcceptance) -> Reply { Reply(.webSocket(acceptance)) }

    package static func eventStream(_ fields: Fields, _ handler: any EventStreamHandler) -> Reply {
        var head = ReplyHead(.ok)
        head.append("Content-Type", "text/event-stream")
        head.append(fields)
        return Reply(.eventStream(head, handler))
    }

    /// The reply with further field lines; a WebSocket and a tunnel are unchanged.
    package func adding(_ lines: [UInt8]) -> Reply {
        guard !lines.isEmpty else { return self }
        var changed = self
        switch content {
        case .response(var response):
            response.head.append(lines: lines)
            changed.content = .response(response)
        case .eventStream(var head, let handler):
            head.append(lines: lines)
            changed.content = .eventStream(head, handler)
        case .webSocket, .tunnel: break
        }
        return changed
    }
}

/// Data that a handler attaches to an exchange and gets back when it is over. The engine does not use it.
package struct ExchangeNote: Sendable {
    /// The owner of the exchange, for a handler that serves several.
    package var owner: (any AnyObject & Sendable)?
    /// The caller, as a number of the handler.
    package var subject: Int64 = 0
    /// The effect of the exchange, as a number of the handler.
    package var effect: Int64 = 0
    /// The bytes that a content coding has taken off the body.
    package var bytesSavedByCoding = 0
    /// Further data.
    package var detail: (any AnyObject & Sendable)?
    /// Released when the reply is written, or its connection is closed: for what is limited while replies wait for their readers.
    package var lease: (any AnyObject & Sendable)?

    package init() {}
}

extension Reply {
    /// The reply for a handler that sends it itself: with a `Date` line, and with the body in memory, which is empty if `request` allows
    /// none; nil for a WebSocket, an event stream or a tunnel, and for a file that cannot be read.
    package func whole(for request: Request, date line: [UInt8]) -> (head: ReplyHead, body: [UInt8])? {
        guard case .response(let response) = content else { return nil }
        var head = response.head
        head.append(lines: date ?? line)
        if request.method == .head || response.status.hasNoContent { return (head, []) }
        switch response.body {
        case .empty: return (head, [])
        case .bytes(let bytes): return (head, bytes)
        case .file(let region): return region.read(at: 0, count: region.range.count).map { (head, $0) }
        }
    }
}
