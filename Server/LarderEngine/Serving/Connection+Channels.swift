import LarderHTTP
import LarderTime

/// Connections that have become a channel or a tunnel.
extension Connection {
    func startWebSocket(_ pendingReply: PendingReply, _ acceptance: WebSocketAcceptance, _ reply: Reply) {
        do throws(Rejection) {
            let head = try acceptance.head(for: pendingReply.request)
            start(Channel(.webSocket, acceptance.handler, self), pendingReply, head, reply)
        } catch {
            var rejection = loop.handler.rejected(error)
            if error.status == .upgradeRequired { rejection.head.append("Sec-WebSocket-Version", "13") }
            rejection.date = reply.date
            self.pendingReply = pendingReply
            write(rejection)
        }
    }

    func startStream(_ pendingReply: PendingReply, _ handler: any ChannelHandler, _ reply: Reply) {
        let isChunked = pendingReply.request.minorVersion == 1
        var head = reply.head
        if isChunked { head.append("Transfer-Encoding", "chunked") } else { head.append("Connection", "close") }
        start(Channel(.eventStream(isChunked: isChunked), handler, self), pendingReply, head, reply)
    }

    private func start(_ channel: Channel, _ pendingReply: PendingReply, _ head: ReplyHead, _ reply: Reply) {
        begin(pendingReply, head, reply)
        guard pendingReply.request.method != .head else {
            closesAfterOutput = true
            return
        }
        mode = .channel(channel)
        channel.start()
    }

    /// Passes bytes in both directions from now on.
    func startTunnel(_ pendingReply: PendingReply, _ end: TunnelEnd, _ reply: Reply) {
        begin(pendingReply, reply.head, reply)
        guard let upstream = end.open() else {
            closesAfterOutput = true
            return
        }
        mode = .tunnel(upstream)
        sendChannel(upstream.join(self))
        let early = Array(unread.bytes[unread.start...])
        unread = ByteQueue()
        if !early.isEmpty { pass(early, to: upstream) }
    }

    func pass(_ bytes: [UInt8], to upstream: UpstreamConnection) {
        upstream.send(bytes)
        if !isClosed { setInterest() }
    }

    /// Writes the head that turns the connection into a channel and ends the exchange.
    private func begin(_ pendingReply: PendingReply, _ head: ReplyHead, _ reply: Reply) {
        let bytes = head.bytes(date: reply.date ?? loop.date.line, connection: "")
        output.append(bytes)
        if pendingReply.request.method != .head, let pacer = reply.pacer {
            self.pacer = pacer
            pacer.opened()
        }
        var record = pendingReply.record
        (record.head, record.bytesSent) = (head, bytes.count)
        records.append(record)
    }

    /// Sends content of a channel; it is collected until the end of the loop's turn. A reader that is too slow is disconnected.
    func sendChannel(_ content: [UInt8]) {
        guard !isClosed else { return }
        if let pacer { pacer.take(content) } else { write(content: content) }
        if waitingBytes > loop.configuration.outputBytesMaximum { close() }
    }

    /// Writes content with the framing of the channel.
    func write(content: [UInt8]) {
        switch mode {
        case .channel(let channel): output.append(channel.framed(content))
        case .tunnel: output.append(content)
        case .http, .stalled: return
        }
        markDirty()
    }

    /// Bytes in memory that wait for the peer to read, or for their time.
    var waitingBytes: Int { output.waitingBytes + (pacer?.waitingBytes ?? 0) }

    /// Closes the connection of a channel when its content is written.
    ///
    /// - Parameter last: written behind the content.
    func closeAfterContent(_ last: [UInt8] = []) {
        let end: @Sendable () -> Void = { [self] in
            output.append(last)
            closesAfterOutput = true
            markDirty()
        }
        if let pacer { pacer.finish(end) } else { end() }
    }

    /// Lets the connection continue at the end of this turn of its loop, or of the next one if this one is ending.
    func markDirty() {
        guard !isDirty else { return }
        isDirty = true
        loop.dirty.append(self)
    }
}
