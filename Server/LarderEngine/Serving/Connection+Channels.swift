import LarderHTTP
import LarderTime

/// Connections that have become a WebSocket or an event stream.
extension Connection {
    func upgrade(_ pendingReply: PendingReply, _ acceptance: WebSocketAcceptance, _ reply: Reply) {
        do {
            let (head, channel) = try WebSocketChannel.accept(acceptance, pendingReply.request, self)
            begin(pendingReply, head, reply)
            mode = .webSocket(channel)
            channel.start()
        } catch {
            var rejection = loop.handler.rejected(error.rejection)
            if error == .version { rejection.head.append("Sec-WebSocket-Version", "13") }
            rejection.date = reply.date
            self.pendingReply = pendingReply
            write(rejection)
        }
    }

    func startStream(_ pendingReply: PendingReply, _ handler: any EventStreamHandler, _ reply: Reply) {
        let channel = EventStreamChannel(handler, isChunked: pendingReply.request.minorVersion == 1, self)
        begin(pendingReply, channel.framed(reply.head), reply)
        guard pendingReply.request.method != .head else {
            closesAfterOutput = true
            return
        }
        mode = .eventStream(channel)
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
        let arrived = upstream.join(self)
        // Behind the head, which is not in the output yet.
        if let pacer { pacer.take(arrived) } else { loop.scratch.append(contentsOf: arrived) }
        let early = Array(unread.bytes[unread.start...])
        unread = ByteQueue()
        if !early.isEmpty { pass(early.span, to: upstream) }
    }

    func pass(_ bytes: Span<UInt8>, to upstream: UpstreamConnection) {
        upstream.send(bytes)
        if !isClosed { setInterest() }
    }

    /// Writes the head that turns the connection into a channel and ends the exchange.
    private func begin(_ pendingReply: PendingReply, _ head: ReplyHead, _ reply: Reply) {
        let start = loop.scratch.count
        loop.scratch.append(head: head, date: reply.date ?? loop.date.line, connection: "")
        if pendingReply.request.method != .head, let pacer = reply.pacer {
            self.pacer = pacer
            pacer.opened()
        }
        guard loop.handler.wantsRecords else { return }
        records.append(
            ExchangeRecord(
                request: pendingReply.request,
                head: head,
                bytesSent: loop.scratch.count - start,
                bodyBytes: 0,
                bytesSavedByCoding: 0,
                started: pendingReply.started,
                ended: loop.now,
                isComplete: true,
                context: pendingReply.context
            )
        )
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
        case .eventStream(let channel): output.append(channel.framed(content))
        case .webSocket, .tunnel: output.append(content)
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

    func markDirty() {
        guard !isDirty else { return }
        isDirty = true
        loop.markDirty(self)
    }
}
