package import LarderHTTP
package import LarderTime

/// Answers requests. Called on the loops' threads: blocking delays every connection of the loop.
package protocol ExchangeHandler: Sendable {
    /// An exchange begins. Its request is complete, or has a body that is not read yet (`Request.isCut`). What the handler sets as
    /// `exchange.context` stays with the exchange until its record.
    ///
    /// - Returns: of a request with a body, whether it is read. A handler that returns `.hold` keeps `exchange` and either lets the body be
    ///   read with `Exchange.proceed(upTo:)` or ends the exchange.
    func began(_ request: Request, _ exchange: Exchange) -> HeadVerdict

    /// Answers a complete request, or returns nil and keeps `exchange`, which must then be completed exactly once, from any
    /// thread.
    func handle(_ request: Request, _ exchange: Exchange) -> Reply?

    /// The reply to a rejected request.
    func rejected(_ rejection: Rejection) -> Reply

    /// The exchange is over: its last byte was written, or is about to be in one write, or its connection is gone.
    func finished(_ record: consuming ExchangeRecord)
}

/// A value of the handler that belongs to one exchange. The engine does not use it.
package typealias ExchangeContext = any AnyObject & Sendable

extension ExchangeHandler {
    package func began(_ request: Request, _ exchange: Exchange) -> HeadVerdict { .proceed }
}

/// How to continue after the head of a request.
package enum HeadVerdict: Sendable {
    case proceed
    /// Nothing more is read until the handler calls `proceed(upTo:)`.
    case hold
}

extension Status {
    /// The status of records without a reply: 499, as proxies write it.
    package static let noReply = Status(code: 499)
}

/// The result of an exchange.
package struct ExchangeRecord: Sendable {
    package var request: Request
    package let started: MonotonicTime
    package var context: ExchangeContext?
    /// The head of the reply, without `Date` and `Connection` if the engine added them; `.none` without a reply.
    package internal(set) var head = ReplyHead.none
    /// Bytes of the reply's head and body.
    package var bytesSent = 0
    package internal(set) var bodyBytes = 0
    /// The bytes that a content coding has taken off the body.
    package internal(set) var bytesSavedByCoding = 0
    package internal(set) var ended: MonotonicTime
    /// Whether the whole reply was written.
    package internal(set) var isComplete = true

    package init(request: Request, started: MonotonicTime, context: ExchangeContext?) {
        (self.request, self.started, self.context) = (request, started, context)
        ended = started
    }

    package var status: Status { head.status }
}

/// How an exchange ends whose bytes the handler sent itself.
package enum ExchangeEnding: Sendable, Hashable {
    /// Normally: the connection continues with the next request if request and reply allow it.
    case persist
    /// The connection is closed after the sent bytes (FIN).
    case close
    /// The connection is reset after the sent bytes (RST).
    case reset
    /// Nothing more is sent. The connection stays open until the peer closes it.
    case silence
}

/// A request on a connection whose reply is pending.
package struct Exchange: Sendable {
    package let loop: EventLoop
    /// Nil for an exchange without a connection. Used on the loop's thread only.
    let connection: Connection?
    let index: Int
    /// Receives the reply instead of the connection, to change or delay it.
    package var interceptor: (@Sendable (Reply) -> Void)?
    /// What the handler has set, until the exchange is answered. On the loop's thread only.
    package var context: ExchangeContext? {
        get { connection?.pendingReply?.record.context }
        nonmutating set { connection?.pendingReply?.record.context = newValue }
    }

    init(loop: EventLoop, connection: Connection?, index: Int) {
        self.loop = loop
        self.connection = connection
        self.index = index
    }

    /// An exchange without a connection: its reply goes to `interceptor`.
    package init(detachedOn loop: EventLoop, _ interceptor: @escaping @Sendable (Reply) -> Void) {
        self.init(loop: loop, connection: nil, index: 0)
        self.interceptor = interceptor
    }

    /// Answers the exchange, from any thread. Has no effect if the peer has gone.
    package func complete(_ reply: Reply) {
        if let interceptor { return interceptor(reply) }
        if let connection { loop.execute { [index] in connection.complete(index, reply) } }
    }

    /// The same exchange, whose reply gets further complete field lines.
    package func adding(_ lines: [UInt8]) -> Exchange {
        guard !lines.isEmpty else { return self }
        var adding = self
        adding.interceptor = { [self] in complete($0.adding(lines)) }
        return adding
    }

    /// Calls a function if the peer goes away before the exchange is answered, at once if it has gone. Replaces an earlier one.
    ///
    /// A peer that ends its sending side counts as gone, as for nginx: a timeout of a client looks like this. A handler that lets an
    /// exchange wait must call this method. Must be called on the loop's thread; `body` is called there.
    package func whenAbandoned(_ body: @escaping @Sendable () -> Void) {
        guard let connection else { return }
        precondition(loop.isCurrent, "Connections must be used on their loop's thread.")
        connection.watchAbandonment(index, body)
    }

    /// Lets a wait of the exchange end when the client leaves. From any thread, after the wait has begun.
    ///
    /// - Parameters:
    ///   - isPending: whether the wait is not over; a later wait must not be replaced by one that is.
    ///   - end: ends the wait. Called on the loop.
    package func end(while isPending: @escaping @Sendable () -> Bool, by end: @escaping @Sendable () -> Void) {
        let register: @Sendable () -> Void = { if isPending() { whenAbandoned(end) } }
        if loop.isCurrent { register() } else { loop.execute(register) }
    }

    /// Whether the connection is closed. Only known on the loop's thread; false on others.
    package var isAbandoned: Bool { loop.isCurrent && connection?.isClosed ?? false }

    /// Sends bytes of a reply unchanged, from any thread. The handler is responsible for their syntax.
    package func send(_ bytes: [UInt8]) { loop.execute { [connection, index] in connection?.send(index, bytes) } }

    /// Sends bytes as `send(_:)` does, then calls `next` in a later turn of the loop.
    ///
    /// - Parameter next: its argument is whether the connection is still open. A peer that has closed answers bytes with a reset,
    ///   and the loop can have read the reset by then.
    package func send(_ bytes: [UInt8], then next: @escaping @Sendable (_ isConnected: Bool) -> Void) {
        send(bytes)
        loop.execute { [loop, connection] in
            loop.execute { next(connection.map { !$0.isClosed } ?? false) }
        }
    }

    /// Ends an exchange whose bytes were sent with `send`.
    ///
    /// - Parameters:
    ///   - last: the last bytes, sent in the same turn of the loop: a client that has them finds the exchange ended.
    ///   - reply: the reply for the record: the head that was sent and the body's length.
    package func end(_ ending: ExchangeEnding, after last: [UInt8] = [], _ reply: Reply?) {
        loop.execute { [connection, index] in
            if !last.isEmpty { connection?.send(index, last) }
            connection?.end(index, ending, reply)
        }
    }

    /// Starts reading the body of a request that is held at its head.
    ///
    /// - Parameter limit: how many bytes are read; the connection is closed after the exchange if the body has more. Nil: all.
    package func proceed(upTo limit: Int? = nil) {
        loop.execute { [connection, index] in connection?.proceed(index, upTo: limit) }
    }
}
