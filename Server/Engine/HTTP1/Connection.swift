import LarderHTTP
import LarderTime

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// A connection: reads requests, has them answered in order, and writes the replies. Confined to its loop.
///
/// One request is worked on at a time. While its reply is owed, or its output waits for a slow reader, nothing more is read
/// from the peer than fits one buffer: that is all the backpressure there is, and all that is needed.
final class Connection {
    enum Mode {
        case http
        case webSocket(WebSocketChannel)
        case eventStream(EventStreamChannel)
    }

    /// The exchange whose reply is owed.
    private struct Owed {
        let request: Request
        let started: MonotonicTime
    }

    let descriptor: Int32
    let id: UInt64
    let peer: SocketAddress
    /// Strong: the loop forgets its connections when they close, and an unowned reference would cost more than the cycle.
    let loop: EventLoop

    private(set) var mode = Mode.http
    private var reader: RequestReader
    private var unread: [UInt8] = []
    private var output = Output()
    private var owed: Owed?
    private var exchangeCount = 0
    private var records: [ExchangeRecord] = []
    private var interest: Readiness = .read
    private var deadline: MonotonicTime
    private var isDirty = false
    private var isClosed = false
    private var closesAfterOutput = false
    private var hasPeerEnded = false
    private var isProcessing = false
    /// After a refusal the rest of what the peer sends is read and dropped, so that the reply is not lost in a reset.
    private var isLingering = false
    private var lingeredBytes = 0

    /// What may be kept unread of a peer that sends on while its reply is owed.
    private static let unreadBytesMaximum = 256 << 10

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
        var buffer = loop.readBuffer
        loop.readBuffer = []
        defer { loop.readBuffer = buffer }
        switch SystemCall.receive(descriptor, into: &buffer) {
        case .wouldBlock: return
        case .failed: return close()
        case .count(0): return peerEnded()
        case .count(let count):
            if isLingering {
                lingeredBytes += count
                if lingeredBytes > 1 << 20 { close() }
                return
            }
            switch mode {
            case .http: received(buffer.span.extracting(0..<count))
            case .webSocket(let channel): channel.received(buffer.span.extracting(0..<count))
            case .eventStream: return
            }
        }
    }

    /// The peer will send no more. What it has asked for is still answered.
    private func peerEnded() {
        hasPeerEnded = true
        if case .http = mode, owed != nil || !output.isEmpty, !isLingering {
            closesAfterOutput = closesAfterOutput || owed == nil
            return setInterest()
        }
        close()
    }

    private func received(_ bytes: Span<UInt8>) {
        guard unread.isEmpty, owed == nil, !output.hasLarge else {
            unsafe bytes.withUnsafeBufferPointer { unsafe unread.append(contentsOf: $0) }
            return process()
        }
        var consumed = 0
        loop.scratch.removeAll(keepingCapacity: true)
        process(bytes, &consumed)
        if consumed < bytes.count, !isClosed {
            unsafe bytes.extracting(consumed..<bytes.count).withUnsafeBufferPointer {
                unsafe unread.append(contentsOf: $0)
            }
        }
        afterProcessing()
    }

    /// Goes on with what was read before.
    private func process() {
        guard !isProcessing, !isClosed, case .http = mode else { return }
        var consumed = 0
        let bytes = unread
        loop.scratch.removeAll(keepingCapacity: true)
        process(bytes.span, &consumed)
        if !isClosed { unread = consumed == bytes.count ? [] : Array(bytes[consumed...]) }
        afterProcessing()
    }

    private func process(_ bytes: Span<UInt8>, _ consumed: inout Int) {
        isProcessing = true
        defer { isProcessing = false }
        while owed == nil, !closesAfterOutput, !isClosed, !output.hasLarge, case .http = mode {
            switch reader.next(bytes, &consumed) {
            case .incomplete: return
            case .awaitsContinue: loop.scratch.append(contentsOf: "HTTP/1.1 100 Continue\r\n\r\n".utf8)
            case .refused(let refusal): return refuse(refusal)
            case .request(let request): answer(request)
            }
        }
    }

    private func afterProcessing() {
        guard !isClosed else { return }
        let hadLarge = output.hasLarge
        if !loop.scratch.isEmpty {
            // Taken out and put back, so that the buffer has one owner at any time and is never copied.
            var fresh: [UInt8] = []
            swap(&fresh, &loop.scratch)
            let outcome = output.write(fresh, to: descriptor)
            fresh.removeAll(keepingCapacity: true)
            swap(&fresh, &loop.scratch)
            afterWriting(outcome)
        } else if output.hasLarge {
            afterWriting(output.flush(to: descriptor))
        }
        updateDeadline()
        setInterest()
        // What was read behind a large body had to wait for it, and no event will tell that it has left already.
        if hadLarge, output.isEmpty, !unread.isEmpty { markDirty() }
    }

    // MARK: Answering

    private func answer(_ request: Request) {
        var request = request
        exchangeCount += 1
        request.connection = id
        request.exchangeIndex = exchangeCount
        request.peer = peer
        // The loop's own time is taken once a turn: good enough for deadlines, and too coarse for a log.
        let started = loop.handler.wantsRecords ? loop.configuration.monotonic.uptime : loop.now
        owed = Owed(request: request, started: started)
        let exchange = Exchange(loop: loop, connection: id, index: exchangeCount)
        if let reply = loop.handler.handle(request, exchange) { write(reply) }
    }

    /// Answers an exchange that was kept. Later exchanges and second answers find nothing to do.
    func complete(_ index: Int, _ reply: Reply) {
        guard owed != nil, index == exchangeCount, !isClosed else { return }
        loop.scratch.removeAll(keepingCapacity: true)
        write(reply)
        afterProcessing()
        process()
    }

    private func write(_ reply: Reply) {
        guard let owed else { preconditionFailure("A reply is written to the exchange that is owed one.") }
        switch reply {
        case .prepared(let prepared, let extra):
            write(prepared.status, prepared.head, extra, .bytes(prepared.body), owed)
        case .response(let response): write(response.status, response.serializedHead(), [], response.body, owed)
        case .webSocket(let acceptance): upgrade(owed, acceptance)
        case .eventStream(let fields, let handler): startStream(owed, fields, handler)
        }
    }

    private func write(_ status: Status, _ head: [UInt8], _ extra: [UInt8], _ body: Response.Body, _ owed: Owed) {
        let isPersistent = staysOpen(owed.request)
        let isHead = owed.request.method == .head
        let start = loop.scratch.count
        loop.scratch.append(contentsOf: head)
        loop.scratch.append(contentsOf: loop.date.line)
        if !extra.isEmpty { loop.scratch.append(contentsOf: extra) }
        if !isPersistent {
            loop.scratch.append(contentsOf: "Connection: close\r\n".utf8)
            closesAfterOutput = true
        } else if owed.request.minorVersion == 0 {
            loop.scratch.append(contentsOf: "Connection: keep-alive\r\n".utf8)
        }
        loop.scratch.append(0x0D)
        loop.scratch.append(0x0A)
        var bodyCount = 0
        if !isHead, !status.hasNoContent {
            bodyCount = body.count
            switch body {
            case .empty: break
            case .bytes(let bytes):
                if bytes.count <= Output.copiedBytesMaximum {
                    loop.scratch.append(contentsOf: bytes)
                    bodyCount = 0
                } else {
                    output.appendLarge(bytes)
                }
            case .file(let region): output.appendLarge(region)
            }
        }
        finish(owed, status, bytesSent: loop.scratch.count - start + bodyCount)
    }

    private func finish(_ owed: Owed, _ status: Status, bytesSent: Int) {
        self.owed = nil
        guard loop.handler.wantsRecords else { return }
        records.append(
            ExchangeRecord(
                request: owed.request,
                status: status,
                bytesSent: bytesSent,
                started: owed.started,
                ended: loop.now,
                isComplete: true
            )
        )
    }

    /// Whether the connection persists after this exchange (RFC 9112 §9.3).
    private func staysOpen(_ request: Request) -> Bool {
        guard !isStopping, !hasPeerEnded else { return false }
        guard request.fields.range(of: "connection") != nil else { return request.minorVersion == 1 }
        let options = (request.fields.combined(.connection) ?? "").lowercased().split(separator: ",")
            .map { $0.filter { $0 != " " && $0 != "\t" } }
        if options.contains("close") { return false }
        return request.minorVersion == 1 || options.contains("keep-alive")
    }

    /// Answers what is no request, and closes.
    func refuse(_ refusal: Refusal) {
        let response = loop.handler.refused(refusal)
        loop.scratch.append(contentsOf: response.serializedHead())
        loop.scratch.append(contentsOf: loop.date.line)
        loop.scratch.append(contentsOf: "Connection: close\r\n\r\n".utf8)
        if case .bytes(let bytes) = response.body { loop.scratch.append(contentsOf: bytes) }
        closesAfterOutput = true
        isLingering = true
        if !isProcessing { afterProcessing() }
    }

    // MARK: Channels

    private func upgrade(_ owed: Owed, _ acceptance: WebSocketAcceptance) {
        do {
            let (head, channel) = try WebSocketChannel.accept(acceptance, owed.request, self)
            loop.scratch.append(contentsOf: head)
            loop.scratch.append(contentsOf: loop.date.line)
            loop.scratch.append(contentsOf: "\r\n".utf8)
            finish(owed, .switchingProtocols, bytesSent: head.count)
            mode = .webSocket(channel)
            channel.start()
        } catch {
            let response = loop.handler.refused(error.refusal)
            var head = response.serializedHead()
            if error == .version { head.append(contentsOf: "Sec-WebSocket-Version: 13\r\n".utf8) }
            write(error.refusal.status, head, [], response.body, owed)
        }
    }

    private func startStream(_ owed: Owed, _ fields: Fields, _ handler: any EventStreamHandler) {
        let channel = EventStreamChannel(handler, isChunked: owed.request.minorVersion == 1, self)
        let head = channel.head(fields)
        loop.scratch.append(contentsOf: head)
        loop.scratch.append(contentsOf: loop.date.line)
        loop.scratch.append(contentsOf: "\r\n".utf8)
        finish(owed, .ok, bytesSent: head.count)
        guard owed.request.method != .head else {
            closesAfterOutput = true
            return
        }
        mode = .eventStream(channel)
        channel.start()
    }

    /// Sends bytes of a channel, gathered until the loop's turn ends. A reader who does not keep up is cut off.
    func sendChannel(_ bytes: [UInt8]) {
        guard !isClosed else { return }
        output.append(bytes)
        if output.waitingBytes > loop.configuration.outputBytesMaximum { return close() }
        markDirty()
    }

    func closeAfterOutput() {
        closesAfterOutput = true
        markDirty()
    }

    private func markDirty() {
        guard !isDirty else { return }
        isDirty = true
        loop.markDirty(self)
    }

    // MARK: Writing

    func flush() {
        isDirty = false
        guard !isClosed else { return }
        afterWriting(output.flush(to: descriptor))
        updateDeadline()
        setInterest()
        if output.isEmpty, !unread.isEmpty { process() }
    }

    private func afterWriting(_ outcome: Output.Outcome) {
        switch outcome {
        case .failed: close()
        case .blocked: break
        case .drained:
            reportRecords(areComplete: true)
            guard closesAfterOutput else { return }
            if isLingering {
                shutdown(descriptor, Int32(SHUT_WR))
            } else {
                close()
            }
        }
    }

    private func reportRecords(areComplete: Bool) {
        guard !records.isEmpty else { return }
        let done = records
        let ended = loop.configuration.monotonic.uptime
        records.removeAll(keepingCapacity: true)
        for record in done {
            loop.handler.finished(
                ExchangeRecord(
                    request: record.request,
                    status: record.status,
                    bytesSent: record.bytesSent,
                    started: record.started,
                    ended: ended,
                    isComplete: areComplete
                )
            )
        }
    }

    private func setInterest() {
        guard !isClosed else { return }
        var wanted: Readiness = []
        if !output.isEmpty { wanted.insert(.write) }
        if !hasPeerEnded, unread.count < Self.unreadBytesMaximum, output.waitingBytes < Output.copiedBytesMaximum * 16 {
            wanted.insert(.read)
        }
        guard wanted != interest else { return }
        interest = wanted
        loop.watch(self, for: wanted)
    }

    // MARK: Time

    private func updateDeadline() {
        let configuration = loop.configuration
        switch mode {
        case .webSocket, .eventStream: deadline = loop.now + configuration.heartbeat
        case .http:
            if isLingering {
                deadline = loop.now + .seconds(2)
            } else if owed != nil {
                // The handler takes the time it needs; a peer that has gone is noticed by its hang-up.
                deadline = MonotonicTime(nanoseconds: .max)
            } else if !output.isEmpty {
                deadline = loop.now + configuration.idleTimeout
            } else if !reader.isInside {
                deadline = loop.now + configuration.idleTimeout
            } else if deadline > loop.now + configuration.headReadTimeout {
                // Counted from the request's first byte: one more byte every nine seconds buys no time.
                deadline = loop.now + configuration.headReadTimeout
            }
        }
    }

    func checkDeadlines(_ now: MonotonicTime) {
        guard now >= deadline else { return }
        switch mode {
        case .webSocket(let channel):
            deadline = now + loop.configuration.heartbeat
            channel.heartbeat()
        case .eventStream(let channel):
            deadline = now + loop.configuration.heartbeat
            channel.heartbeat()
        case .http:
            guard reader.isInside, !isLingering, output.isEmpty else { return close() }
            loop.scratch.removeAll(keepingCapacity: true)
            refuse(Refusal(.timeout, "The request did not arrive in time."))
        }
    }

    // MARK: Ending

    private var isStopping = false

    func beginStop() {
        isStopping = true
        switch mode {
        case .webSocket(let channel): channel.close(code: 1001, reason: "the server is stopping")
        case .eventStream(let channel): channel.finish()
        case .http:
            // What has begun to arrive or is being answered gets its reply; the rest of the connections were idle.
            if owed == nil, output.isEmpty, !reader.isInside { close() }
        }
    }

    func close() {
        guard !isClosed else { return }
        isClosed = true
        loop.forget(self)
        systemClose(descriptor)
        if let owed, loop.handler.wantsRecords {
            records.append(
                ExchangeRecord(
                    request: owed.request,
                    status: Status(code: 499),
                    bytesSent: 0,
                    started: owed.started,
                    ended: loop.now,
                    isComplete: false
                )
            )
        }
        owed = nil
        reportRecords(areComplete: false)
        switch mode {
        case .webSocket(let channel): channel.connectionClosed()
        case .eventStream(let channel): channel.connectionClosed()
        case .http: break
        }
    }
}

/// close(2); inside `Connection` the name is its own.
private func systemClose(_ descriptor: Int32) { _ = close(descriptor) }
