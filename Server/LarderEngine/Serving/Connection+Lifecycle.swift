import Glibc
import LarderHTTP
import LarderTime

/// What a connection waits for, deadlines and closing.
extension Connection {
    /// How many bytes of a body extend the deadline of its request.
    private static let bodyBytesPerDeadline = 256 << 10

    func updateDeadline() {
        // The common case, checked first because this runs for every exchange.
        if case .http = mode, pendingReply == nil, output.isEmpty, !reader.isInside, !isLingering {
            deadline = MonotonicTime(nanoseconds: loop.now.nanoseconds &+ loop.idleNanoseconds)
            return
        }
        let configuration = loop.configuration
        switch mode {
        case .channel: deadline = loop.now + configuration.heartbeat
        case .stalled: deadline = MonotonicTime(nanoseconds: .max)
        case .tunnel:
            // Between messages there is none; the peer extends it by reading.
            guard !output.isEmpty else {
                deadline = MonotonicTime(nanoseconds: .max)
                return
            }
            guard output.sentCount != sentCountAtDeadline || deadline.nanoseconds == .max else { return }
            sentCountAtDeadline = output.sentCount
            deadline = loop.now + configuration.idleTimeout
        case .http:
            if isLingering {
                deadline = loop.now + .seconds(2)
            } else if pendingReply != nil {
                // The handler has no deadline; a peer that has gone is detected by its hang-up.
                deadline = MonotonicTime(nanoseconds: .max)
            } else if !output.isEmpty {
                // The peer extends the deadline by reading, not by sending.
                guard output.sentCount != sentCountAtDeadline else { return }
                sentCountAtDeadline = output.sentCount
                deadline = loop.now + configuration.idleTimeout
            } else if reader.body.count >= bodyBytesAtDeadline + Self.bodyBytesPerDeadline {
                // A large body may take longer, if it does not arrive too slowly.
                bodyBytesAtDeadline = reader.body.count
                deadline = loop.now + configuration.headReadTimeout
            } else if deadline > loop.now + configuration.headReadTimeout {
                // Counted from the request's first byte: sending one byte every nine seconds does not extend it.
                deadline = loop.now + configuration.headReadTimeout
            }
        }
    }

    /// Whether the pending exchange is over when the peer sends no more.
    var endsWithPeer: Bool { pendingReply.map { $0.isSilent || $0.abandoned != nil } ?? false }

    func setInterest() {
        guard !isClosed else { return }
        var wanted: Readiness = []
        if !output.isEmpty { wanted.insert(.write) }
        switch mode {
        case .tunnel(let upstream): if !hasPeerEnded, !upstream.isBacklogged { wanted.insert(.read) }
        case .http, .channel, .stalled:
            if !hasPeerEnded, unread.count < Self.unreadBytesMaximum,
                output.waitingBytes < Output.copiedBytesMaximum * 16
            {
                wanted.insert(.read)
            }
        }
        // A peer that has sent too much to be read on can leave too.
        if endsWithPeer, !hasPeerEnded, !wanted.contains(.read) { wanted.insert(.end) }
        guard wanted != interest else { return }
        interest = wanted
        loop.watch(self, for: wanted)
    }

    func checkDeadlines(_ now: MonotonicTime) {
        guard now >= deadline else { return }
        switch mode {
        case .channel(let channel):
            deadline = now + loop.configuration.heartbeat
            channel.heartbeat()
        case .tunnel, .stalled: close()
        case .http:
            guard reader.isInside, !isLingering, output.isEmpty else { return close() }
            reject(Rejection(.requestTimeout, "The request did not arrive in time."))
        }
    }

    func beginStop() {
        isStopping = true
        switch mode {
        case .channel(let channel): channel.close(code: 1001, reason: "the server is stopping")
        case .tunnel: closeAfterContent()
        case .stalled: close()
        case .http:
            // Requests that have begun to arrive or are being answered get their reply; other connections are idle.
            if pendingReply == nil, output.isEmpty, !reader.isInside, !mustResume {
                close()
            }
        }
    }

    /// The peer will send no more. Requests that were read are still answered.
    func peerEnded() {
        hasPeerEnded = true
        // A peer that has gone looks like one that only sends no more. Work that can be cancelled is.
        guard !endsWithPeer else { return close() }
        if case .tunnel(let upstream) = mode {
            setInterest()
            return upstream.clientEnded()
        }
        if case .http = mode, pendingReply != nil || !output.isEmpty || mustResume, !isLingering {
            closesAfterOutput = closesAfterOutput || (pendingReply == nil && !mustResume)
            return setInterest()
        }
        close()
    }

    /// - Parameter resets: whether the connection is closed with a RST.
    func close(resets: Bool = false) {
        guard !isClosed else { return }
        isClosed = true
        loop.forget(self)
        if !resets { endTLS() }
        if resets { SystemCall.closeWithReset(descriptor) } else { Glibc.close(descriptor) }
        if let pendingReply { records.append(pendingReply.record) }
        leases = []
        // Before the waits of the exchange end, so that the record says what it was waiting for.
        reportRecords(areComplete: false)
        pendingReply.take()?.abandoned?()
        pacedEnding.take()?()
        // A pacer has the exchange, which has the connection.
        pacer = nil
        endChannel()
    }

    /// Tells a channel that its connection carries nothing any more.
    func endChannel() {
        switch mode {
        case .channel(let channel): channel.connectionClosed()
        case .tunnel(let upstream): upstream.clientClosed()
        case .http, .stalled: break
        }
    }
}
