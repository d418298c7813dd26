import LarderTime

/// The task that reads the response.
extension SocketExchange {
    /// Waits for the head. Must be called once.
    func head() async -> ReplyInbox.Head {
        let waiter = Pending<ReplyInbox.Head>()
        if let now = inbox.head(waiter) { return now }
        let cancelled = TransportError(.cancelled, "The request was cancelled.")
        return await waiter.value(ifCancelled: .failure(cancelled)) { self.abandon(cancelled) }
    }

    /// Returns the next piece or the end if it is already there.
    func takeNow() -> ReplyInbox.Piece? {
        let (piece, resumes) = inbox.takeNow()
        if resumes { resumeReading() }
        return piece
    }

    /// Waits for the next piece; nil at the end.
    func piece() async -> ReplyInbox.Piece {
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
    func timeOut(_ reason: String) {
        guard preventSending() else { return abandon(TransportError(.timedOut, reason)) }
        abandon(
            TransportError(.unreachable, "There was no connection for the request in time: nothing was sent. \(reason)")
        )
    }

    /// Ends the exchange with an error. Only the first end has an effect.
    func abandon(_ error: TransportError) { if inbox.finish(.failure(error), dropsContent: true) { stop() } }
}

/// Ends an exchange when its response can no longer be read. Retains the transport, which must outlive the exchange.
final class ExchangeRetainer: Sendable {
    let exchange: SocketExchange
    private let transport: SocketTransport

    init(_ exchange: SocketExchange, _ transport: SocketTransport) {
        self.exchange = exchange
        self.transport = transport
    }

    deinit { exchange.abandon(TransportError(.cancelled, "The response was released before its end.")) }
}
