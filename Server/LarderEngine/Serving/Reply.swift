package import LarderHTTP

/// The reply to an exchange.
package struct Reply: Sendable {
    package enum Content: Sendable {
        case response(Response)
        /// A serialised reply; `extra` are complete field lines for this exchange only.
        case prepared(PreparedResponse, extra: [UInt8])
        /// The connection becomes a WebSocket if the request is a valid upgrade (RFC 6455).
        case webSocket(WebSocketAcceptance)
        /// A stream of Server-Sent Events; `extra` are complete field lines, one of them `Content-Type`.
        case eventStream(extra: [UInt8], any EventStreamHandler)
        /// The connection passes bytes to and from another server, which has accepted an upgrade. `head` is a 101 with its field lines.
        case tunnel(head: [UInt8], TunnelEnd)
    }

    package var content: Content
    /// A complete `Date` line that replaces the server's own; empty sends none.
    package var date: [UInt8]?
    /// Data of the handler that is returned with the record of the exchange.
    package var note = ExchangeNote()

    package init(_ content: Content) { self.content = content }

    package static func response(_ response: Response) -> Reply { Reply(.response(response)) }

    package static func prepared(_ prepared: PreparedResponse, extra: [UInt8]) -> Reply {
        Reply(.prepared(prepared, extra: extra))
    }

    package static func webSocket(_ acceptance: WebSocketAcceptance) -> Reply { Reply(.webSocket(acceptance)) }

    package static func eventStream(_ fields: Fields, _ handler: any EventStreamHandler) -> Reply {
        var lines = Array("Content-Type: text/event-stream\r\n".utf8)
        fields.append(to: &lines)
        return Reply(.eventStream(extra: lines, handler))
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

/// A reply as bytes, for a handler that sends it itself (`Exchange.send`).
package struct RenderedReply: Sendable {
    package var status: Status
    /// Status line and field lines, each with its CRLF, without the empty line.
    package var head: [UInt8]
    package var body: [UInt8]
}

extension Reply {
    /// The reply as bytes, with the `Date` line, and without a body if `request` allows none; nil for a WebSocket, an event stream or a
    /// tunnel, and for a file that cannot be read.
    package func rendered(for request: Request, date line: [UInt8]) -> RenderedReply? {
        let status: Status
        var head: [UInt8]
        var body: [UInt8] = []
        switch content {
        case .prepared(let prepared, let extra):
            (status, head, body) = (prepared.status, prepared.head, prepared.body)
            head.append(contentsOf: extra)
        case .response(let response):
            (status, head) = (response.status, response.serializedHead())
            switch response.body {
            case .empty: break
            case .bytes(let bytes): body = bytes
            case .file(let region):
                guard let bytes = region.read(at: 0, count: region.range.count) else { return nil }
                body = bytes
            }
        case .webSocket, .eventStream, .tunnel: return nil
        }
        head.append(contentsOf: date ?? line)
        if request.method == .head || status.hasNoContent { body = [] }
        return RenderedReply(status: status, head: head, body: body)
    }
}
