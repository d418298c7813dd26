import Glibc
import LarderHTTP
import LarderHTTPWire
import LarderTime

/// A connection: reads requests, passes them to the handler in order, and writes the replies. Confined to its loop.
///
/// It processes one request at a time. While a reply is pending, or replies wait for a slow reader, later requests are not parsed,
/// and at most `unreadBytesMaximum` and one read buffer of them are read. So at most `Output.copiedBytesMaximum` and one reply
/// wait for a peer that pipelines requests and does not read.
///
/// `@unchecked Sendable`: other threads have it only inside of an `Exchange`, which passes it to jobs of the loop and does not use it.
final class Connection: DescriptorUser, @unchecked Sendable {
    enum Mode {
        case http
        case webSocket(WebSocketChannel)
        case eventStream(EventStreamChannel)
        /// Bytes are passed on to another server, and back.
        case tunnel(UpstreamConnection)
        /// The handshake or a channel has stalled by a fault: input is discarded, and only the peer ends the connection.
        case stalled
    }

    /// The exchange whose reply is pending.
    struct PendingReply {
        let request: Request
        let started: MonotonicTime
        let context: ExchangeContext?
        /// Whether the request's body, or a part of it, is not read.
        var isHeld = false
        /// Whether the handler has sent bytes itself.
        var bytesSent = 0
        /// Whether nothing more will ever be sent.
        var isSilent = false
        /// Called if the peer goes away first.
        var abandoned: (@Sendable () -> Void)?
    }

    let descriptor: Int32
    let id: UInt64
    let peer: SocketAddress
    /// Strong: the loop removes its connections when they close, and an unowned reference would cost more than the cycle.
    let loop: EventLoop

    var mode = Mode.http
    var reader: RequestReader
    var unread = ByteQueue()
    /// Whether `unread` was left because earlier replies must be written first.
    var mustResume = false
    /// Whether the loop will process pending requests in its next turn.
    var isResuming = false
    var output = Output()
    var pendingReply: PendingReply?
    /// What a channel's content passes; nil: it is written at once.
    var pacer: (any ChannelPacer)?
    /// Called if the connection of a paced channel ends.
    var pacedEnding: (@Sendable () -> Void)?
    var exchangeCount = 0
    /// Whether the current request already has its number, because its head was passed to the handler.
    var isAnnounced = false
    /// The context of the current request, if it is announced.
    var announcedContext: ExchangeContext?
    var resetsAfterOutput = false
    var isStopping = false
    var records: [ExchangeRecord] = []
    /// What the replies that are not completely written keep (`ExchangeNote.lease`).
    var leases: [any AnyObject & Sendable] = []
    private var writingBegan = MonotonicTime(nanoseconds: 0)
    var interest: Readiness = .read
    var deadline: MonotonicTime
    /// `Output.sentCount` when the deadline of a slow reader was set.
    var sentCountAtDeadline = -1
    /// The number of bytes of the request's body when its deadline was set.
    var bodyBytesAtDeadline = 0
    var isDirty = false
    var isClosed = false
    var closesAfterOutput = false
    var hasPeerEnded = false
    /// Whether any byte was received.
    var hasBegun = false
    /// Decides what goes wrong with the TLS handshake. Asked once.
    var handshakeFault: (@Sendable (_ host: String?) -> HandshakeFault?)?
    /// Whether the end of the TLS session is not announced to the peer.
    var omitsCloseNotify = false
    var isProcessing = false
    /// After a rejection further input is read and discarded, so that the reply is not lost in a reset.
    var isLingering = false
    var lingeredBytes = 0

    /// The maximum number of unread bytes of a peer that sends more while its reply is pending.
    static let unreadBytesMaximum = 256 << 10

    init(_ descriptor: Int32, id: UInt64, peer: SocketAddress, loop: EventLoop) {
        self.descriptor = descriptor
        self.id = id
        self.peer = peer
        self.loop = loop
        reader = RequestReader(
            headBytesMaximum: loop.configuration.headBytesMaximum,
            bodyBytesMaximum: loop.configuration.bodyBytesMaximum
        )
        deadline = loop.now + loop.configuration.headReadTimeout
    }

    // MARK: Reading

    func ready(_ readiness: Readiness) {
        if readiness.contains(.hangUp) { return close() }
        if readiness.contains(.write) { flush() }
        if readiness.contains(.read), !isClosed, interest.contains(.read) { read() }
    }

    private func read() {
        switch loop.readBuffer.receive(from: descriptor) {
        case .wouldBlock: return
        case .failed: return close()
        case .count(0): return peerEnded()
        case .count(let count):
            if isLingering {
                lingeredBytes += count
                if lingeredBytes > 1 << 20 { close() }
                return
            }
            loop.readBuffer.withBytes(count) { bytes in
                if beginsTLS(bytes) { decrypt(bytes) } else { take(bytes) }
            }
        }
    }

    /// Takes bytes that are not encrypted.
    func take(_ bytes: Span<UInt8>) {
        switch mode {
        case .http: break
        case .webSocket(let channel): return channel.received(bytes)
        case .eventStream, .stalled: return
        case .tunnel(let upstream): return pass(bytes, to: upstream)
        }
        guard unread.isEmpty, pendingReply == nil, output.isEmpty else {
            unread.append(bytes)
            return process()
        }
        var consumed = 0
        loop.scratch.removeAll(keepingCapacity: true)
        process(bytes, &consumed)
        if consumed < bytes.count, !isClosed { unread.append(bytes.extracting(consumed..<bytes.count)) }
        afterProcessing()
    }

    /// Continues with pending input.
    func process() {
        guard !isProcessing, !isClosed, case .http = mode else { return }
        let bytes = unread.bytes
        var consumed = unread.start
        loop.scratch.removeAll(keepingCapacity: true)
        process(bytes.span, &consumed)
        if !isClosed { unread.removeFirst(consumed - unread.start) }
        afterProcessing()
    }

    private func process(_ bytes: Span<UInt8>, _ consumed: inout Int) {
        isProcessing = true
        defer { isProcessing = false }
        mustResume = false
        while pendingReply == nil, !closesAfterOutput, !isClosed, case .http = mode {
            // Replies are not serialised faster than they are written.
            guard output.isEmpty, loop.scratch.count <= Output.copiedBytesMaximum else {
                mustResume = true
                return
            }
            switch reader.next(bytes, &consumed, tellsHeads: loop.handler.wantsHeads) {
            case .incomplete:
                if hasPeerEnded || (isStopping && !reader.isInside) { closesAfterOutput = true }
                return
            case .awaitsContinue: loop.scratch.append("HTTP/1.1 100 Continue\r\n\r\n")
            case .rejected(let rejection): return reject(rejection)
            case .head(let request): announce(request)
            case .request(let request): answer(request)
            }
        }
    }

    /// Writes the collected bytes.
    func afterProcessing() {
        guard !isClosed else { return }
        if !loop.scratch.isEmpty {
            // Taken out and put back, so that the buffer always has one owner and is never copied.
            var fresh: [UInt8] = []
            swap(&fresh, &loop.scratch)
            noteWriting()
            let outcome = output.write(fresh, to: descriptor)
            fresh.removeAll(keepingCapacity: true)
            swap(&fresh, &loop.scratch)
            afterWriting(outcome)
        } else if output.hasLarge {
            noteWriting()
            afterWriting(output.flush(to: descriptor))
        } else if closesAfterOutput, output.isEmpty, !isLingering {
            // Everything was written.
            reportRecords(areComplete: true)
            return close()
        }
        guard !isClosed else { return }
        updateDeadline()
        setInterest()
        // There is no further event for replies that are already written.
        if mustResume, output.isEmpty { loop.resume(self) }
    }

    // MARK: Replies

    private func answer(_ request: Request) {
        var request = request
        let context = isAnnounced ? announcedContext.take() : loop.handler.context(of: request)
        if !isAnnounced { exchangeCount += 1 }
        request.wasAnnounced = isAnnounced
        isAnnounced = false
        bodyBytesAtDeadline = 0
        request.connection = id
        request.exchangeIndex = exchangeCount
        request.peer = peer
        request.isSecure = output.tls != nil
        // The loop's own time is updated once per turn: sufficient for deadlines, too coarse for records.
        let started = loop.handler.wantsRecords ? loop.configuration.monotonic.uptime : loop.now
        pendingReply = PendingReply(request: request, started: started, context: context, isHeld: request.isCut)
        let exchange = Exchange(loop: loop, connection: self, index: exchangeCount, context: context)
        guard let reply = loop.handler.handle(request, exchange) else { return }
        write(reply)
    }

    /// Answers a kept exchange. Has no effect on other exchanges or on one that is already answered.
    func complete(_ index: Int, _ reply: Reply) {
        guard pendingReply != nil, index == exchangeCount, !isClosed else { return }
        loop.scratch.removeAll(keepingCapacity: true)
        write(reply)
        afterProcessing()
        process()
    }

    func write(_ reply: Reply) {
        guard let pendingReply = pendingReply.take() else {
            preconditionFailure("A reply must belong to the exchange whose reply is pending.")
        }
        switch reply.body {
        case .empty, .bytes, .file: break
        case .webSocket(let acceptance): return upgrade(pendingReply, acceptance, reply)
        case .eventStream(let handler): return startStream(pendingReply, handler, reply)
        case .tunnel(let end): return startTunnel(pendingReply, end, reply)
        }
        if let lease = reply.lease { leases.append(lease) }
        // After an unread body the next request cannot be found.
        let isPersistent = !pendingReply.isHeld && staysOpen(pendingReply.request)
        let isHead = pendingReply.request.method == .head
        let start = loop.scratch.count
        if !isPersistent { closesAfterOutput = true }
        if pendingReply.isHeld { isLingering = true }
        let connection: StaticString =
            isPersistent
            ? pendingReply.request.minorVersion == 0 ? "Connection: keep-alive\r\n" : "" : "Connection: close\r\n"
        loop.scratch.append(head: reply.head, date: reply.date ?? loop.date.line, connection: connection)
        let headCount = loop.scratch.count - start
        var bodyCount = 0
        if !isHead, !reply.status.hasNoContent {
            bodyCount = reply.body.count
            switch reply.body {
            case .empty, .webSocket, .eventStream, .tunnel: break
            case .bytes(let bytes):
                if bytes.count <= Output.copiedBytesMaximum {
                    loop.scratch.append(contentsOf: bytes)
                } else {
                    output.appendLarge(bytes)
                }
            case .file(let region): output.appendLarge(region)
            }
        }
        guard loop.handler.wantsRecords else { return }
        let record = ExchangeRecord(
            request: pendingReply.request,
            head: reply.head,
            bytesSent: headCount + bodyCount,
            bodyBytes: bodyCount,
            bytesSavedByCoding: isHead ? 0 : reply.bytesSavedByCoding,
            started: pendingReply.started,
            ended: loop.configuration.monotonic.uptime,
            isComplete: true,
            context: pendingReply.context
        )
        // A reply that is sent in one write with its head is recorded first: a peer that has it finds its record.
        if output.isEmpty { loop.handler.finished(record) } else { records.append(record) }
    }

    /// Whether the connection persists after this exchange (RFC 9112 §9.3).
    func staysOpen(_ request: Request) -> Bool {
        // Other requests that were read are answered too; the connection is closed after the last reply.
        guard !isStopping && !hasPeerEnded || !unread.isEmpty else { return false }
        guard request.fields.range(of: "connection") != nil else { return request.minorVersion == 1 }
        let options = (request.fields.combined(.connection) ?? "").lowercased().split(separator: ",")
            .map { $0.filter { $0 != " " && $0 != "\t" } }
        if options.contains("close") { return false }
        return request.minorVersion == 1 || options.contains("keep-alive")
    }

    /// Answers malformed input and closes.
    func reject(_ rejection: Rejection) {
        let reply = loop.handler.rejected(rejection)
        loop.scratch.append(head: reply.head, date: loop.date.line, connection: "Connection: close\r\n")
        loop.scratch.append(contentsOf: reply.bytes)
        closesAfterOutput = true
        isLingering = true
        if !isProcessing { afterProcessing() }
    }

    // MARK: Writing

    /// Writes what the socket accepts, and continues with what has waited for that.
    ///
    /// - Parameter extendsDeadline: false for messages of a handshake, by which a peer that sends no request gets no more time.
    func flush(extendsDeadline: Bool = true) {
        isDirty = false
        guard !isClosed else { return }
        noteWriting()
        afterWriting(output.flush(to: descriptor))
        if extendsDeadline { updateDeadline() }
        setInterest()
        if mustResume, output.isEmpty { process() }
        if case .tunnel(let upstream) = mode { upstream.updateInterest() }
    }

    /// Notes when the last write of waiting records began: the peer may have the reply before the write returns.
    func noteWriting() {
        if !records.isEmpty { writingBegan = loop.configuration.monotonic.uptime }
    }

    func afterWriting(_ outcome: Output.Outcome) {
        switch outcome {
        case .failed: close()
        case .blocked: break
        case .drained:
            leases = []
            reportRecords(areComplete: true)
            guard closesAfterOutput else { return }
            if resetsAfterOutput { return close(resets: true) }
            if isLingering {
                endTLS()
                shutdown(descriptor, Int32(SHUT_WR))
            } else {
                close()
            }
        }
    }

    func reportRecords(areComplete: Bool) {
        guard !records.isEmpty else { return }
        let ended = areComplete ? writingBegan : loop.configuration.monotonic.uptime
        // Taken out and put back, so that the buffer has one owner and the records are not copied.
        var done: [ExchangeRecord] = []
        swap(&done, &records)
        for index in done.indices {
            done[index].ended = ended
            if !areComplete { done[index].isComplete = false }
            loop.handler.finished(done[index])
        }
        done.removeAll(keepingCapacity: true)
        if records.isEmpty { swap(&done, &records) }
    }
}
