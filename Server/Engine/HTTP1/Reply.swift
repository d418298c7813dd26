package import LarderHTTP

/// What an exchange is answered with.
package struct Reply: Sendable {
    package enum Content: Sendable {
        case response(Response)
        /// One that was serialised before; `extra` are complete field lines for this exchange alone.
        case prepared(PreparedResponse, extra: [UInt8])
        /// The connection becomes a WebSocket, if the request asks for one as RFC 6455 has it.
        case webSocket(WebSocketAcceptance)
        /// The reply is a stream of Server-Sent Events, with these fields besides.
        case eventStream(Fields, any EventStreamHandler)
    }

    package var content: Content
    /// A complete `Date` field line to send instead of the server's own; empty sends none.
    package var date: [UInt8]?
    /// What the handler wants to be given again with the record of the exchange.
    package var note = ExchangeNote()
    /// Set where the reply holds for later requests of the same bytes too. Heeded for prepared replies that the handler gives
    /// at once.
    package var standing: (any StandingReply)?

    package init(_ content: Content) { self.content = content }

    package static func response(_ response: Response) -> Reply { Reply(.response(response)) }

    package static func prepared(_ prepared: PreparedResponse, extra: [UInt8]) -> Reply {
        Reply(.prepared(prepared, extra: extra))
    }

    package static func webSocket(_ acceptance: WebSocketAcceptance) -> Reply { Reply(.webSocket(acceptance)) }

    package static func eventStream(_ fields: Fields, _ handler: any EventStreamHandler) -> Reply {
        Reply(.eventStream(fields, handler))
    }
}

/// What a handler attaches to an exchange and is given back when it is over. The engine does not look inside.
package struct ExchangeNote: Sendable {
    /// Whose exchange it is, where a handler serves several.
    package var owner: (any AnyObject & Sendable)?
    /// Who asked, by a number of the handler's own.
    package var subject: Int64 = 0
    /// What the exchange brought about, by a number of the handler's own.
    package var effect: Int64 = 0
    /// Anything else.
    package var detail: (any AnyObject & Sendable)?

    package init() {}
}

/// A reply as bytes, for a handler that sends it by its own hand (`Exchange.send`).
package struct RenderedReply: Sendable {
    package var status: Status
    /// Status line and field lines, each with its CRLF, without the empty line.
    package var head: [UInt8]
    package var body: [UInt8]
}

extension Reply {
    /// The reply as bytes, with the `Date` line and without a body where `request` wants none; nil for what is no finite
    /// reply (a WebSocket, an event stream) or a file that cannot be read.
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
        case .webSocket, .eventStream: return nil
        }
        head.append(contentsOf: date ?? line)
        if request.method == .head || status.hasNoContent { body = [] }
        return RenderedReply(status: status, head: head, body: body)
    }
}
