import LarderTime

/// Byte-identical repeats of earlier requests.
extension Connection {
    /// Answers received bytes with a repeatable reply; false, without any effect, if there is none.
    func repeatReply(to bytes: Span<UInt8>) -> Bool {
        guard isBetweenExchanges, let entry = loop.repeatableReplies.find(bytes) else { return false }
        let wantsRecords = loop.handler.wantsRecords
        let started = wantsRecords ? loop.configuration.monotonic.uptime : loop.now
        guard entry.repeatable.isCurrent() else { return false }
        entry.update(loop.date)
        exchangeCount += 1
        if wantsRecords {
            // As with any reply that is sent in one write: a peer that has it finds its record.
            entry.repeatable.wasRepeated(
                RepeatedExchange(
                    connection: id,
                    index: exchangeCount,
                    started: started,
                    ended: loop.configuration.monotonic.uptime,
                    bytesSent: entry.reply.count
                )
            )
        }
        switch output.tls == nil ? SystemCall.send(descriptor, entry.reply, from: 0) : .count(0) {
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

    /// Whether the next byte begins a request whose reply can be sent at once and leaves the connection open.
    private var isBetweenExchanges: Bool {
        output.isEmpty && unread.isEmpty && pendingReply == nil && !reader.isInside && !closesAfterOutput
            && !hasPeerEnded
            && !isStopping
    }
}
