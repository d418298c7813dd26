import Glibc
import LarderHTTP
import LarderTLS
import LarderTime

/// A connection to another server. Confined to its loop.
final class UpstreamConnection {
    enum Phase {
        case connecting(place: Int, tried: Int)
        /// The TLS handshake is under way. Nothing of the request was sent.
        case securing
        case idle
        case exchange
        /// After a 101: bytes are passed on unchanged. Nothing is read until the client has joined.
        case tunnel
        /// A tunnel without its client, whose pending bytes are written before it is closed; input is discarded.
        case closing
        case closed
    }

    private static let connectTimeoutSeconds: Int64 = 10
    /// The maximum time in which the server neither reads a part of the request nor sends a part of the response. Event streams
    /// and WebSockets may be silent.
    static let responseTimeoutSeconds: Int64 = 60
    /// How long it waits for another request.
    private static let idleTimeoutSeconds: Int64 = 15
    /// The maximum time without progress after the end of a tunnel.
    static let closeTimeoutSeconds: Int64 = 10

    /// Strong, as the loop: it removes its connections when they close, and an unowned reference would cost more than the cycle.
    private let pool: UpstreamPool
    let loop: EventLoop
    var descriptor: Int32 = -1
    var phase = Phase.closed
    private var exchange: UpstreamExchange?
    private var reader = ResponseReader()
    /// With a TLS session for https, once it is connected.
    var output = Output()
    /// What the poller reports.
    private(set) var interest: Readiness = []
    var deadline: MonotonicTime?
    /// Whether it has carried an exchange before this one.
    private var isReused = false
    /// Whether a part of the current request was written.
    private var hasWritten = false
    /// Whether the current exchange has received anything.
    private var hasResponse = false
    private var isClosed = false
    /// The client of a tunnel.
    var client: Connection?
    /// Whether the client of a tunnel sends no more.
    var hasClientEnded = false
    /// What has arrived in a tunnel before its client.
    var early: [UInt8] = []

    init(_ pool: UpstreamPool) {
        self.pool = pool
        loop = pool.loop
    }

    // MARK: Beginning

    func open(for exchange: UpstreamExchange) {
        carry(exchange)
        connect(to: pool.preferredPlace, tried: 0)
    }

    /// Connects to one of the addresses; after a failure to the next one.
    private func connect(to place: Int, tried: Int) {
        let places = pool.address.places
        guard tried < places.count else { return fail(.unreachable("The host has no address that can be reached.")) }
        do {
            descriptor = try places[place % places.count].connect()
            phase = .connecting(place: place % places.count, tried: tried + 1)
            deadline = loop.now + .seconds(Self.connectTimeoutSeconds)
            interest = .write
            try loop.watch(descriptor, for: .write, user: self)
        } catch { connectionFailed(error.description, place, tried + 1) }
    }

    private func connectionFailed(_ reason: String, _ place: Int, _ tried: Int) {
        closeDescriptor()
        guard tried < pool.address.places.count else { return fail(.unreachable(reason)) }
        connect(to: place + 1, tried: tried)
    }

    func begin(_ exchange: UpstreamExchange) {
        isReused = true
        carry(exchange)
        start()
    }

    private func carry(_ exchange: UpstreamExchange) {
        self.exchange = exchange
        exchange.connection = self
    }

    /// Begins the TLS handshake, or sends the request.
    private func connected() {
        guard let client = pool.address.tls else { return start() }
        do throws(TLSError) {
            let now = loop.configuration.wall.now
            output.tls = try TLSFilter(client.session(host: pool.address.host, port: pool.address.port, now: now))
        } catch { return fail(.unreachable(error.description)) }
        phase = .securing
        flush()
    }

    /// Sends the request of the current exchange.
    private func start() {
        guard let exchange else { return }
        let isHead = exchange.request.method == .head
        reader = exchange.request.isUpgrade ? ResponseReader(.upgrade) : ResponseReader(isHead: isHead)
        phase = .exchange
        deadline = loop.now + .seconds(Self.responseTimeoutSeconds)
        hasWritten = false
        hasResponse = false
        output.removeAll()
        output.append(exchange.request.bytes)
        if isReused, !exchange.request.method.isIdempotent {
            // A connection that the server has closed meanwhile must not take a request that cannot be sent again.
            read()
            guard !isClosed, self.exchange != nil else { return }
        }
        flush()
    }

    // MARK: Writing

    func flush() {
        let sentCount = output.sentCount
        let outcome = output.flush(to: descriptor)
        if output.sentCount > sentCount {
            hasWritten = true
            if deadline != nil { extendDeadline() }
        }
        switch outcome {
        case .drained: break
        case .blocked:
            if case .tunnel = phase { return updateInterest() }
            return watch([.read, .write])
        // A server may answer and close before it has read everything: its response is read first.
        case .failed: output.removeAll()
        }
        switch phase {
        case .closing: endSending()
        case .tunnel:
            if hasClientEnded { endSending() } else { deadline = nil }
            updateInterest()
            client?.setInterest()
            return
        default: break
        }
        watch(.read)
    }

    private func extendDeadline() {
        let isEnding = if case .closing = phase { true } else { hasClientEnded }
        deadline = loop.now + .seconds(isEnding ? Self.closeTimeoutSeconds : Self.responseTimeoutSeconds)
    }

    func watch(_ wanted: Readiness) {
        guard wanted != interest else { return }
        interest = wanted
        do throws(EngineError) { try loop.watch(descriptor, for: wanted, user: self) } catch {
            fail(.unreachable(error.description))
        }
    }

    // MARK: Reading

    private func read() {
        switch SystemCall.receive(descriptor, into: &loop.readBuffer) {
        case .wouldBlock: return
        case .failed(let code): lost(SystemCall.describe(code))
        case .count(0): peerEnded()
        case .count(let count):
            let bytes = Array(loop.readBuffer[..<count])
            if output.tls == nil { take(bytes) } else { decrypt(bytes) }
            // A server that writes head and body apart waits, by Nagle's algorithm, until the head is acknowledged.
            if case .exchange = phase { SystemCall.setOption(descriptor, Int32(IPPROTO_TCP), TCP_QUICKACK, 1) }
        }
    }

    private func decrypt(_ bytes: [UInt8]) {
        var plain: [UInt8] = []
        var failure: TLSError?
        do throws(TLSError) { try output.tls?.receive(bytes.span, into: &plain) } catch { failure = error }
        if output.tls?.hasOutput == true { flush() }
        if case .securing = phase {
            if let failure {
                return fail(
                    failure.isAboutCertificate
                        ? .untrusted(failure.description) : .unreachable(failure.description)
                )
            }
            if output.tls?.isEstablished == true { start() }
        }
        if !plain.isEmpty { take(plain) }
        guard !isClosed else { return }
        if let failure { return lost(failure.description) }
        if output.tls?.isEndedByPeer == true { peerEnded() }
    }

    private func take(_ bytes: [UInt8]) {
        hasResponse = true
        if case .closing = phase { return }
        if deadline != nil { extendDeadline() }
        received(bytes)
    }

    private func received(_ bytes: [UInt8]) {
        switch phase {
        // Bytes without a request: the connection cannot be used any more.
        case .idle: cancel()
        case .exchange:
            var (events, count): ([ResponseReader.Event], Int) = ([], 0)
            var failure: ResponseReader.Failure?
            do throws(ResponseReader.Failure) { count = try reader.receive(bytes.span, &events) } catch {
                failure = error
            }
            if case .head(let head)? = events.first, head.status == .switchingProtocols {
                phase = .tunnel
                deadline = nil
                early = Array(bytes[count...])
                updateInterest()
                exchange?.receive(.head(head))
                return
            }
            deliver(events)
            if let failure { fail(.invalid(failure.description)) }
        case .tunnel:
            if let client {
                client.sendChannel(bytes)
                updateInterest()
            } else {
                early += bytes
            }
        case .connecting, .securing, .closing, .closed: return
        }
    }

    private func deliver(_ events: [ResponseReader.Event]) {
        guard let exchange else { return }
        for event in events {
            switch event {
            case .head(let head):
                if head.status == .ok, head.isEventStream { deadline = nil }
                exchange.receive(.head(head))
            case .content(let bytes): exchange.receive(.content(bytes))
            case .end:
                let isReusable = reader.keepsAlive && output.isEmpty && output.tls?.isEndedByPeer != true
                self.exchange = nil
                if isReusable {
                    phase = .idle
                    deadline = loop.now + .seconds(Self.idleTimeoutSeconds)
                    pool.finished(self)
                } else {
                    shut()
                }
                return exchange.end(.end)
            }
            // The receiver may have cancelled.
            if isClosed { return }
        }
    }

    // MARK: Ending

    func checkDeadline(_ now: MonotonicTime) {
        guard let deadline, now >= deadline else { return }
        switch phase {
        case .idle: cancel()
        case .connecting(let place, let tried):
            connectionFailed(
                "The connection was not accepted within \(Self.connectTimeoutSeconds) s.",
                place,
                tried
            )
        case .securing, .exchange, .tunnel, .closing, .closed:
            fail(
                .timedOut(
                    "The server has neither read nor sent anything for \(Self.responseTimeoutSeconds) s."
                )
            )
        }
    }

    private func peerEnded() {
        switch phase {
        case .exchange:
            var events: [ResponseReader.Event] = []
            do throws(ResponseReader.Failure) { try reader.end(&events) } catch {
                return error == .noResponse ? lost(error.description) : fail(.invalid(error.description))
            }
            if let cut = output.tls?.errorAtEnd { return fail(.invalid(cut.description)) }
            deliver(events)
        case .tunnel, .idle, .closing: cancel()
        case .securing: fail(.unreachable(output.tls?.errorAtEnd?.description ?? "The server closed the connection."))
        case .connecting, .closed: lost("The server closed the connection without a response.")
        }
    }

    /// The connection is lost. A request that may be repeated, or of which nothing was written, is sent again, once, if the connection
    /// was a reused one: the server may have closed it before the request arrived (RFC 9112 §9.3.1). What has ended one idle connection,
    /// such as a restart of the server, has most likely ended the others: the request has a new one.
    private func lost(_ reason: String) {
        guard let exchange else { return cancel() }
        let mayRepeat = exchange.request.method.isIdempotent || !hasWritten
        guard isReused, !hasResponse, mayRepeat, !exchange.wasRepeated else {
            return fail(hasWritten ? .invalid(reason) : .unreachable(reason))
        }
        exchange.wasRepeated = true
        exchange.connection = nil
        self.exchange = nil
        shut()
        pool.closeIdle()
        pool.begin(exchange)
    }

    private func fail(_ failure: UpstreamFailure) {
        let exchange = exchange.take()
        shut()
        exchange?.end(.failed(failure))
    }

    /// Closes the connection and receives nothing more.
    func cancel() {
        exchange.take()?.leave()
        shut()
    }

    private func shut() {
        guard !isClosed else { return }
        isClosed = true
        closeDescriptor()
        phase = .closed
        deadline = nil
        client.take()?.closeAfterContent()
        pool.closed(self)
    }

    private func closeDescriptor() {
        guard descriptor >= 0 else { return }
        loop.forget(descriptor)
        output.tls?.end { SystemCall.send(descriptor, $0, from: $1) }
        output.tls = nil
        close(descriptor)
        descriptor = -1
    }
}

extension UpstreamConnection: DescriptorUser {
    func ready(_ readiness: Readiness) {
        if case .connecting(let place, let tried) = phase {
            let code = SystemCall.error(of: descriptor)
            guard code == 0 else { return connectionFailed(SystemCall.describe(code), place, tried) }
            pool.preferredPlace = place
            return connected()
        }
        if readiness.contains(.write), !output.isEmpty { flush() }
        // A hang-up may follow bytes that are not read yet.
        if readiness.contains(.read) || readiness.contains(.hangUp), descriptor >= 0 { read() }
    }
}
