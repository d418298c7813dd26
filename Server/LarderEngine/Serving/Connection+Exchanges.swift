import LarderHTTP
import LarderTime

/// Exchanges that a handler keeps and writes itself.
extension Connection {
    /// Passes the handler a head whose body is not read yet.
    func announce(_ request: Request) {
        var request = request
        exchangeCount += 1
        isAnnounced = true
        request.connection = id
        request.exchangeIndex = exchangeCount
        request.peer = peer
        // Owed while the handler decides: it may end the exchange before it returns.
        owed = Owed(request: request, started: loop.now, isHeld: true)
        let exchange = Exchange(loop: loop, connection: id, index: exchangeCount)
        if loop.handler.began(request, exchange) == .proceed { owed = nil }
    }

    /// Reads the body of a request that is held at its head.
    func proceed(_ index: Int) {
        guard let owed, owed.isHeld, index == exchangeCount, !isClosed else { return }
        self.owed = nil
        process()
    }

    func send(_ index: Int, _ bytes: [UInt8]) {
        guard owed != nil, index == exchangeCount, !isClosed else { return }
        owed?.bytesSent += bytes.count
        output.append(bytes)
        markDirty()
    }

    func end(_ index: Int, _ ending: ExchangeEnding, _ reply: RenderedReply?, _ note: ExchangeNote) {
        guard let owed, index == exchangeCount, !isClosed else { return }
        guard ending != .silence else {
            self.owed?.silence = note
            if hasPeerEnded { close() }
            return
        }
        self.owed = nil
        if loop.handler.wantsRecords {
            records.append(
                ExchangeRecord(
                    request: owed.request,
                    status: reply?.status ?? .noReply,
                    head: reply?.head ?? [],
                    bytesSent: owed.bytesSent,
                    bodyBytes: reply?.body.count ?? 0,
                    started: owed.started,
                    ended: loop.now,
                    isComplete: reply.map { owed.bytesSent >= $0.head.count + $0.body.count } ?? false,
                    note: note
                )
            )
        }
        switch ending {
        case .persist:
            // After an unread body the next request cannot be found.
            if owed.isHeld || !staysOpen(owed.request) { closesAfterOutput = true }
            if owed.isHeld { isLingering = true }
        case .close: closesAfterOutput = true
        case .reset:
            closesAfterOutput = true
            resetsAfterOutput = true
        case .silence: break
        }
        loop.scratch.removeAll()
        if closesAfterOutput { flush() } else { markDirty() }
        if !isClosed { process() }
    }
}
