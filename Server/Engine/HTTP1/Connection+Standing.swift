import LarderTime

/// Requests that came before, byte for byte.
extension Connection {
    /// Answers what was received with a reply that stands; false where there is none, and nothing has happened.
    func repeatReply(to bytes: Span<UInt8>) -> Bool {
        guard isBetweenExchanges, let entry = loop.standing.find(bytes) else { return false }
        let wantsRecords = loop.handler.wantsRecords
        let started = wantsRecords ? loop.configuration.monotonic.uptime : loop.now
        guard entry.standing.stands() else { return false }
        entry.update(loop.date)
        exchangeCount += 1
        if wantsRecords {
            // As with any reply that leaves in one write: who has it finds its record.
            entry.standing.wasRepeated(
                RepeatedExchange(
                    connection: id,
                    index: exchangeCount,
                    started: started,
                    ended: loop.configuration.monotonic.uptime,
                    bytesSent: entry.reply.count
                )
            )
        }
        switch SystemCall.send(descriptor, entry.reply, from: 0) {
        case .count(entry.reply.count):
            deadline = MonotonicTime(nanoseconds: loop.now.nanoseconds &+ loop.idleNanoseconds)
            return true
        case .count(let sent): output.append(Array(entry.reply[sent...]))
        case .wouldBlock: output.append(entry.reply)
        case .failed:
            close()
            return true
        }
        updateDeadline()
        setInterest()
        return true
    }

    /// Whether the next byte is the first of a request, and its reply can leave at once and leaves the connection open.
    private var isBetweenExchanges: Bool {
        output.isEmpty && unread.isEmpty && owed == nil && !reader.isInside && !closesAfterOutput && !hasPeerEnded
            && !isStopping
    }
}
