package import LarderHTTP
package import LarderTime

/// Answers requests. Called on the loops' threads: what it does there, everybody on the loop waits for.
package protocol ExchangeHandler: Sendable {
    /// Answers a complete request, or returns nil and keeps `exchange`, which must then be completed once, from any thread.
    func handle(_ request: Request, _ exchange: Exchange) -> Reply?

    /// The reply to what was refused before it was a request.
    func refused(_ refusal: Refusal) -> Response

    /// Whether `finished` is of interest.
    var wantsRecords: Bool { get }

    /// An exchange is over: its last byte was given to the system, or is about to be in one write, or its connection is gone.
    func finished(_ record: ExchangeRecord)

    /// Whether `began` is of interest.
    var wantsHeads: Bool { get }

    /// The head of a request is there, and its body is not read yet. Whoever returns `.hold` keeps `exchange`, and lets the
    /// body be read with `Exchange.proceed()`, or ends it.
    func began(_ request: Request, _ exchange: Exchange) -> HeadVerdict
}

/// What is to become of a request whose head has arrived.
package enum HeadVerdict: Sendable {
    case proceed
    /// Nothing more is read until the handler says so.
    case hold
}

extension Status {
    /// Stands in a record where there was no reply: 499, as proxies write it.
    package static let noReply = Status(code: 499)
}

/// What became of an exchange.
package struct ExchangeRecord: Sendable {
    package let request: Request
    package let status: Status
    /// Status line and field lines of the reply, without `Date` and `Connection` where the engine added them; empty when
    /// there was no reply.
    package let head: [UInt8]
    /// Bytes of the reply's head and body.
    package let bytesSent: Int
    package let bodyBytes: Int
    package let started: MonotonicTime
    package internal(set) var ended: MonotonicTime
    /// Whether the whole reply was given to the system.
    package internal(set) var isComplete: Bool
    package let note: ExchangeNote
}

/// How an exchange ends that a handler answered by its own hand.
package enum ExchangeEnding: Sendable, Hashable {
    /// In order: the connection goes on to the next request if request and reply allow it.
    case persist
    /// The connection is closed behind the bytes sent (FIN).
    case close
    /// The connection is torn down behind the bytes sent (RST).
    case reset
    /// Nothing more is ever sent. The connection stays until the peer gives up.
    case silence
}

/// A place on a connection where a reply is owed.
package struct Exchange: Sendable {
    package let loop: EventLoop
    let connection: UInt64
    let index: Int
    /// Takes the reply on its way, where somebody wants to change or delay it.
    package var interceptor: (@Sendable (Reply) -> Void)?

    init(loop: EventLoop, connection: UInt64, index: Int) {
        self.loop = loop
        self.connection = connection
        self.index = index
    }

    /// An exchange that no connection waits for: what answers it goes to `interceptor` alone.
    package init(detachedOn loop: EventLoop, _ interceptor: @escaping @Sendable (Reply) -> Void) {
        self.init(loop: loop, connection: 0, index: 0)
        self.interceptor = interceptor
    }

    /// Answers the exchange, from any thread. Harmless when the peer has gone.
    package func complete(_ reply: Reply) {
        if let interceptor { return interceptor(reply) }
        withConnection { $0.complete($1, reply) }
    }

    /// Sends bytes of a reply as they are, from any thread. The handler answers for its syntax, or for the lack of it.
    package func send(_ bytes: [UInt8]) { withConnection { $0.send($1, bytes) } }

    /// Ends an exchange whose bytes were sent with `send`.
    ///
    /// - Parameter reply: what is to stand in the record: the head that was sent, and the body's length.
    package func end(_ ending: ExchangeEnding, _ reply: RenderedReply?, note: ExchangeNote) {
        withConnection { $0.end($1, ending, reply, note) }
    }

    /// Has the body read of a request that was held at its head.
    package func proceed() { withConnection { $0.proceed($1) } }

    private func withConnection(_ body: @escaping @Sendable (Connection, Int) -> Void) {
        let (connection, index) = (connection, index)
        loop.execute { [loop] in
            guard let connection = loop.connection(connection) else { return }
            body(connection, index)
        }
    }
}
