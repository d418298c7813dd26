import LarderTime

/// One request and its reply, as the task sees it that reads the reply.
package protocol ReplyExchange: AnyObject, Sendable {
    var inbox: ReplyInbox { get }

    /// The reader has made room: content may come again.
    func resumeReading()

    /// Nobody wants the reply any more: what is under way for it ends.
    func stop()
}

extension ReplyExchange {
    /// Waits for the head. To be called once.
    package func head() async -> ReplyInbox.Head {
        let waiter = Pending<ReplyInbox.Head>()
        if let now = inbox.head(waiter) { return now }
        let cancelled = TransportError(.cancelled, "The request was cancelled.")
        return await waiter.value(ifCancelled: .failure(cancelled)) { self.abandon(cancelled) }
    }

    /// The next piece, or the end, where it is there already.
    package func takeNow() -> ReplyInbox.Piece? {
        let (piece, resumes) = inbox.takeNow()
        if resumes { resumeReading() }
        return piece
    }

    /// Waits for the next piece, nil at the end.
    package func piece() async -> ReplyInbox.Piece {
        let cancelled = TransportError(.cancelled, "The reader was cancelled.")
        if Task.isCancelled {
            abandon(cancelled)
            return .failure(cancelled)
        }
        while true {
            if let now = takeNow() { return now }
            let waiter = Pending<ReplyInbox.Piece>()
            guard inbox.wait(waiter) else { continue }
            let woken = await waiter.value(ifCancelled: .failure(cancelled)) { self.abandon(cancelled) }
            if case .failure(let error) = woken { return .failure(error) }
        }
    }

    /// Gives the exchange up. Only the first end counts.
    package func abandon(_ error: TransportError) { if inbox.finish(.failure(error), dropsContent: true) { stop() } }
}

/// Gives an exchange up when nobody can read its reply any more. Holds the transport, whose end would end the exchange.
package final class ReplyLifeline: Sendable {
    package let exchange: any ReplyExchange
    private let transport: any Transport

    package init(_ exchange: any ReplyExchange, _ transport: any Transport) {
        self.exchange = exchange
        self.transport = transport
    }

    deinit { exchange.abandon(TransportError(.cancelled, "Nobody reads the reply any more.")) }
}
