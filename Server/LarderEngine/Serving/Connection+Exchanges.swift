import LarderHTTP
import LarderTime

/// Exchanges that a handler keeps and writes itself.
extension Connection {
    /// Reads the body of a request that is held at its head.
    func proceed(_ index: Int, upTo limit: Int?) {
        guard let pendingReply, pendingReply.request.isCut, index == exchangeCount, !isClosed else { return }
        self.pendingReply = nil
        reader.bodyLimit = limit
        process()
    }

    func watchAbandonment(_ index: Int, _ body: @escaping @Sendable () -> Void) {
        guard !isClosed else { return body() }
        guard index == exchangeCount else { return }
        guard pendingReply != nil else {
            if pacer != nil { pacedEnding = body }
            return
        }
        pendingReply?.abandoned = body
        if hasPeerEnded { close() } else { setInterest() }
    }

    func send(_ index: Int, _ bytes: [UInt8]) {
        guard index == exchangeCount, !isClosed else { return }
        pacedEnding = nil
        guard pendingReply != nil else { return write(content: bytes) }
        pendingReply?.record.bytesSent += bytes.count
        // The reply is complete: a client that closes its sending side now still reads it.
        pendingReply?.abandoned = nil
        output.append(bytes)
        markDirty()
    }

    func end(_ index: Int, _ ending: ExchangeEnding, _ reply: Reply?) {
        guard index == exchangeCount, !isClosed else { return }
        guard let pendingReply else {
            if pacer != nil { cut(ending) }
            return
        }
        guard ending != .silence else {
            self.pendingReply?.isSilent = true
            return hasPeerEnded ? close() : setInterest()
        }
        self.pendingReply = nil
        var record = pendingReply.record
        record.head = reply?.head ?? .none
        record.bodyBytes = reply?.body.count ?? 0
        record.bytesSavedByCoding = reply?.bytesSavedByCoding ?? 0
        // An empty line is between head and body.
        record.isComplete = reply.map { record.bytesSent >= $0.head.bytes.count + 2 + $0.body.count } ?? false
        records.append(record)
        if let lease = reply?.lease { leases.append(lease) }
        if ending != .persist || !staysOpen(pendingReply.request) { closesAfterOutput = true }
        if ending != .reset, pendingReply.request.isCut { isLingering = true }
        if ending == .reset { resetsAfterOutput = true }
        process()
    }

    /// Ends a channel inside of its content.
    private func cut(_ ending: ExchangeEnding) {
        guard ending != .silence else {
            endChannel()
            mode = .stalled
            return markDirty()
        }
        closesAfterOutput = true
        resetsAfterOutput = ending == .reset
        markDirty()
    }
}
