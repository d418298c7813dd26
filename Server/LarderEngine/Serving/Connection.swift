import Glibc
import LarderHTTP
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
        case channel(Channel)
        /// Bytes are passed on to another server, and back.
        case tunnel(UpstreamConnection)
        /// The handshake or a channel has stalled by a fault: input is discarded, and only the peer ends the connection.
        case stalled
    }

    /// The exchange whose reply is pending.
    struct PendingReply {
        /// What is known of the exchange; `bytesSent` are those that the handler has sent itself.
        var record: ExchangeRecord
        /// Whether nothing more will ever be sent.
        var isSilent = false
        /// Called if the peer goes away first.
        var abandoned: (@Sendable () -> Void)?

        var request: Request { record.request }
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
    var output = Output()
    var pendingReply: PendingReply?
    /// What a channel's content passes; nil: it is written at once.
    var pacer: (any ChannelPacer)?
    /// Called if the connection of a paced channel ends.
    var pacedEnding: (@Sendable () -> Void)?
    var exchangeCount = 0
    /// Whether the current request already has its number, because its head was passed to the handler.
    var isAnnounced = false
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
        if readiness.contains(.end), interest.contains(.end), endsWithPeer, !isClosed { return peerEnded() }
        guard readiness.contains(.read), !isClosed, interest.contains(.read) else { return }
        switch SystemCall.receive(descriptor, into: &loop.readBuffer) {
        case .wouldBlock: return
        case .failed: return close()
        case .count(0): return peerEnded()
        case .count(let count):
            if isLingering {
                lingeredBytes += count
                if lingeredBytes > 1 << 20 { close() }
                return
            }
            let bytes = Array(loop.readBuffer[..<count])
            guard hasBegun || begin(with: bytes[0]) else { return }
            if output.tls == nil { take(bytes) } else { decrypt(bytes) }
        }
    }

    /// Takes bytes that are not encrypted.
    func take(_ bytes: [UInt8]) {
        switch mode {
        case .http:
            unread.append(bytes)
            answerRequests()
            // Replies that are made together leave together: to wake a client costs more than to make a reply.
            markDirty()
        case .channel(let channel): channel.received(bytes)
        case .tunnel(let upstream): pass(bytes, to: upstream)
        case .stalled: break
        }
    }

    /// Answers the requests that have arrived, as far as possible now, and writes the replies.
    func process() {
        guard !isProcessing else { return }
        answerRequests()
        flush()
    }

    private func answerRequests() {
        guard !isClosed else { return }
        isProcessing = true
        mustResume = false
        requests: while pendingReply == nil, !closesAfterOutput, !isClosed, case .http = mode {
            // Replies are not serialised faster than they are written.
            mustResume = !output.takesMore
            if mustResume { break }
            let bytes = unread.bytes
            var consumed = unread.start
            let outcome = reader.next(bytes.span, &consumed)
            unread.removeFirst(consumed - unread.start)
            switch outcome {
            case .incomplete:
                if hasPeerEnded || (isStopping && !reader.isInside) { closesAfterOutput = true }
                break requests
            case .awaitsContinue: output.append(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8))
            case .rejected(let rejection): reject(rejection)
            case .head(let request): answer(request, isHead: true)
            case .request(let request): answer(request, isHead: false)
            }
        }
        isProcessing = false
    }

    // MARK: Replies

    /// Passes a request to the handler, completed by what only the connection knows.
    ///
    /// - Parameter isHead: whether its body is not read yet.
    private func answer(_ request: consuming Request, isHead: Bool) {
        if !isAnnounced { exchangeCount += 1 }
        request.connection = id
        request.exchangeIndex = exchangeCount
        request.peer = peer
        request.isSecure = output.tls != nil
        request.wasAnnounced = isAnnounced
        request.isCut = isHead || request.isCut
        let exchange = Exchange(loop: loop, connection: self, index: exchangeCount)
        // The loop's own time is updated once per turn: sufficient for deadlines, too coarse for records.
        let started = loop.configuration.monotonic.uptime
        // Pending while the handler decides: it may let the exchange wait before it returns.
        pendingReply = PendingReply(
            record: ExchangeRecord(request: copy request, started: started, context: announcedContext.take())
        )
        if !isAnnounced {
            let verdict = loop.handler.began(request, exchange)
            if isHead {
                (isAnnounced, announcedContext) = (true, exchange.context)
                if verdict == .proceed { pendingReply = nil }
                return
            }
        }
        (isAnnounced, bodyBytesAtDeadline) = (false, 0)
        if let reply = loop.handler.handle(request, exchange) { write(reply) }
    }

    /// Answers a kept exchange. Has no effect on other exchanges or on one that is already answered.
    func complete(_ index: Int, _ reply: Reply) {
        guard pendingReply != nil, index == exchangeCount, !isClosed else { return }
        write(reply)
        process()
    }

    func write(_ reply: Reply) {
        guard let pendingReply = pendingReply.take() else {
            preconditionFailure("A reply must belong to the exchange whose reply is pending.")
        }
        switch reply.body {
        case .bytes: break
        case .webSocket(let acceptance): return startWebSocket(pendingReply, acceptance, reply)
        case .eventStream(let handler): return startStream(pendingReply, handler, reply)
        case .tunnel(let end): return startTunnel(pendingReply, end, reply)
        }
        if let lease = reply.lease { leases.append(lease) }
        let isPersistent = staysOpen(pendingReply.request)
        if !isPersistent { closesAfterOutput = true }
        if pendingReply.request.isCut { isLingering = true }
        let connection = pendingReply.request.connectionLine(persists: isPersistent)
        let isHead = pendingReply.request.method == .head
        let body = isHead || reply.status.hasNoContent ? [] : reply.bytes
        let head = reply.head.bytes(date: reply.date ?? loop.date.line, connection: connection, room: body.count)
        var record = pendingReply.record
        record.head = reply.head
        record.bytesSent = head.count + body.count
        record.bodyBytes = body.count
        record.bytesSavedByCoding = isHead ? 0 : reply.bytesSavedByCoding
        record.ended = loop.configuration.monotonic.uptime
        output.append(head)
        output.append(body)
        // A reply that is sent in one write with its head is recorded first: a peer that has it finds its record.
        if output.leavesInOneWrite { loop.handler.finished(record) } else { records.append(record) }
    }

    /// Whether the connection persists after this exchange (RFC 9112 §9.3).
    func staysOpen(_ request: Request) -> Bool {
        // Other requests that were read are answered too; the connection is closed after the last reply.
        (!isStopping && !hasPeerEnded || !unread.isEmpty) && request.persists
    }

    /// Answers malformed input and closes.
    func reject(_ rejection: Rejection) {
        let reply = loop.handler.rejected(rejection)
        output.append(reply.head.bytes(date: loop.date.line, connection: "Connection: close\r\n") + reply.bytes)
        closesAfterOutput = true
        isLingering = true
        if !isProcessing { flush() }
    }

    // MARK: Writing

    /// Writes what the socket accepts, and continues with what has waited for that.
    ///
    /// - Parameter extendsDeadline: false for messages of a handshake, by which a peer that sends no request gets no more time.
    func flush(extendsDeadline: Bool = true) {
        isDirty = false
        guard !isClosed else { return }
        // When the last write of the waiting records began: the peer may have the reply before the write returns.
        if !records.isEmpty { writingBegan = loop.configuration.monotonic.uptime }
        switch output.flush(to: descriptor) {
        case .failed: return close()
        case .blocked: break
        case .drained:
            leases = []
            reportRecords(areComplete: true)
            if closesAfterOutput {
                guard isLingering, !resetsAfterOutput else { return close(resets: resetsAfterOutput) }
                endTLS()
                shutdown(descriptor, Int32(SHUT_WR))
            }
        }
        if extendsDeadline { updateDeadline() }
        setInterest()
        // There is no further event for requests that were read already.
        if mustResume, output.isEmpty { markDirty() }
        if case .tunnel(let upstream) = mode { upstream.updateInterest() }
    }

    func reportRecords(areComplete: Bool) {
        guard !records.isEmpty else { return }
        let ended = areComplete ? writingBegan : loop.configuration.monotonic.uptime
        for var record in exchange(&records, with: []) {
            record.ended = ended
            if !areComplete { record.isComplete = false }
            loop.handler.finished(record)
        }
    }
}
