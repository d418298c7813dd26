import LarderTime

/// One request and its response, for the task that reads the response.
package protocol ReplyExchange: AnyObject, Sendable {
    var inbox: ReplyInbox { get }

    /// Called when the reader has made room for content.
    func resumeReading()

    /// Called when the response is no longer needed.
    func stop()

    /// Called when a timeout has passed. Prevents that anything is sent from then on.
    ///
    /// - Returns: whether nothing was sent.
    func preventSending() -> Bool
}

extension ReplyExchange {
    /// Waits for the head. Must be called once.
    package func head() async -> ReplyInbox.Head {
        let waiter = Pending<ReplyInbox.Head>()
        if let now = inbox.head(waiter) { return now }
        let cancelled = TransportError(.cancelled, "The request was cancelled.")
        return await waiter.value(ifCancelled: .failure(cancelled)) { self.abandon(cancelled) }
    }

    /// Returns the next piece or the end if it is already there.
    package func takeNow() -> ReplyInbox.Piece? {
        let (piece, resumes) = inbox.takeNow()
        if resumes { resumeReading() }
        return piece
    }

    /// Waits for the next piece; nil at the end.
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

    /// Ends the exchange because of a timeout.
    package func timeOut(_ reason: String) {
        guard preventSending() else { return abandon(TransportError(.timedOut, reason)) }
        abandon(
            TransportError(.unreachable, "There was no connection for the request in time: nothing was sent. \(reason)")
        )
    }

    /// Ends the exchange with an error. Only the first end has an effect.
    package func abandon(_ error: TransportError) { if inbox.finish(.failure(error), dropsContent: true) { stop() } }
}

/// Ends an exchange when its response can no longer be read. Retains the transport, which must outlive the exchange.
package final class ExchangeRetainer: Sendable {
    package let exchange: any ReplyExchange
    private let transport: any Transport

    package init(_ exchange: any ReplyExchange, _ transport: any Transport) {
        self.exchange = exchange
        self.transport = transport
    }

    deinit { exchange.abandon(TransportError(.cancelled, "The response was released before its end.")) }
}
