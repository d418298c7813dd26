import LarderHTTP
import LarderHTTPWire
import LarderTLS
import LarderTime
import Synchronization

/// One connection to a server, which serves one exchange after another.
///
/// One lock guards all state. A caller writes its request as far as the socket accepts it; the loop's thread reads.
/// Exchanges and readers are notified under the lock, which only enqueues a waiting task; the pool is notified outside
/// of it.
final class SocketConnection: SocketHandler {
    enum Phase {
        case connecting
        /// The tunnel through a proxy and the TLS handshake are under way. Nothing of the request was sent.
        case securing
        case busy
        case idle
        case over
    }

    /// A body that is read while it is sent.
    enum Upload {
        /// There is none, or all of it was written or is in the output.
        case none
        case running
        /// The rest is not sent, so the connection cannot be reused.
        case stopped
    }

    struct State {
        var phase = Phase.connecting
        /// Set while it is connected.
        var link: SocketLink?
        /// Set while it is connecting.
        var connector: SocketConnector?
        /// Set while a proxy opens a tunnel.
        var tunnel: ProxyTunnel?
        /// The deadline of the tunnel, of the TLS handshake or of an idle connection.
        var deadline: MonotonicTime?
        var exchange: SocketExchange?
        var reader = ResponseReader()
        var upload = Upload.none
        /// Set when all output was written, or with false when nothing more can be written.
        var drained: Pending<Bool>?
        var isPaused = false
        /// Whether it served an exchange before, so that the server may have closed it since.
        var isKept = false
        weak var pool: SocketPool?
    }

    /// What must be done after the lock is released.
    enum DeferredEffect {
        case nothing
        /// A response is complete, and the connection is idle or closed. The pool is notified before the exchange, so
        /// that the reader's next request can reuse the connection.
        case served(SocketPool?, isFree: Bool, SocketExchange, [ResponseReader.Event])
        case over(SocketPool?, again: SocketExchange?)
    }

    /// The result of `begin`.
    enum Begin {
        case begun
        /// The connection has ended.
        case gone
        /// The exchange is over.
        case notWanted
    }

    let endpoint: Endpoint
    let clock: any MonotonicClock
    let keepAlive: Duration
    private let wallClock: any WallClock
    private let jumps: EventRegistration?
    let loop: SocketLoop
    private let addresses: [SocketCall.Address]
    private let connectDeadline: MonotonicTime
    let state: Mutex<State>

    init(
        _ addresses: [SocketCall.Address],
        _ exchange: SocketExchange,
        connectDeadline: MonotonicTime,
        pool: SocketPool,
        loop: SocketLoop
    ) {
        endpoint = exchange.endpoint
        clock = pool.clock
        keepAlive = pool.keepAlive
        wallClock = pool.wallClock
        self.loop = loop
        jumps = (clock as? any JumpingClock)?.onJump { loop.wake() }
        self.addresses = addresses
        self.connectDeadline = connectDeadline
        var first = State()
        first.exchange = exchange
        first.pool = pool
        state = Mutex(first)
    }

    /// Whether it has ended.
    var isOver: Bool { state.withLock { $0.phase == .over } }

    /// Begins to connect; false if the exchange is over.
    func start() -> Bool {
        guard let exchange = state.withLock({ $0.exchange }), exchange.board(self) else { return false }
        let connector = SocketConnector(
            addresses,
            host: endpoint.peer.host,
            deadline: connectDeadline,
            clock: clock,
            loop: loop
        ) { self.connected($0) }
        let isWanted = state.withLock { state in
            // The exchange may have been cancelled meanwhile.
            guard state.phase == .connecting else { return false }
            state.connector = connector
            return true
        }
        guard !isWanted || connector.start() else {
            let error = TransportError(.unreachable, "No file descriptor is left.")
            let pool = state.withLock { $0.pool }
            // Waiting exchanges fail first, because each of them would fail in the same way.
            pool?.collapsed(endpoint, error)
            perform(state.withLock { fail(&$0, error) })
            return true
        }
        return true
    }

    // MARK: For the loop

    var interest: SocketInterest? {
        state.withLock { state in
            guard var interest = state.link?.interest(reads: !state.isPaused) else { return nil }
            if let deadline = state.deadline { interest.timeLeft = deadline - clock.uptime }
            return interest
        }
    }

    func ready() {
        perform(
            state.withLock { state in
                flush(&state)
                return read(&state)
            }
        )
    }

    func deadlineReached() {
        perform(
            state.withLock { state in
                guard let deadline = state.deadline, clock.uptime >= deadline else { return .nothing }
                guard state.phase == .securing else { return close(&state) }
                if let tunnel = state.tunnel { return fail(&state, tunnel.failure("no answer in time.")) }
                let late = "'\(endpoint.host)' did not complete the TLS handshake in time."
                return fail(&state, TransportError(.unreachable, late))
            }
        )
    }

    func perform(_ deferredEffect: DeferredEffect) {
        switch deferredEffect {
        case .nothing: return
        case .served(let pool, let isFree, let exchange, let rest):
            if !isFree {
                perform(.over(pool, again: nil))
            } else if let pool {
                pool.becameIdle(self)
            } else {
                closeIdle()
            }
            exchange.completed(rest)
        case .over(let pool, let again):
            loop.wake()
            pool?.ended(self, endpoint)
            guard let again else { return }
            guard let pool else {
                return again.end(.failure(TransportError(.interrupted, "The reused connection was closed.")))
            }
            pool.start(again)
        }
    }

    // MARK: Connecting

    private func connected(_ outcome: SocketConnector.Outcome) {
        perform(
            state.withLock { state in
                state.connector = nil
                guard state.phase == .connecting, let exchange = state.exchange else {
                    if case .success(let descriptor) = outcome { SocketCall.shut(descriptor) }
                    return .nothing
                }
                switch outcome {
                case .failure(let failure):
                    return fail(&state, TransportError(.unreachable, endpoint.explained(failure)))
                case .success(let descriptor):
                    state.link = SocketLink(descriptor)
                    if exchange.tls != nil || endpoint.isUpgrade, let proxy = endpoint.proxy {
                        let tunnel = ProxyTunnel(proxy, to: endpoint)
                        state.tunnel = tunnel
                        state.link?.append(tunnel.request)
                        state.phase = .securing
                        state.deadline = connectDeadline
                        flush(&state)
                    } else {
                        let deferredEffect = begin(&state)
                        guard case .nothing = deferredEffect else { return deferredEffect }
                    }
                    // The loop has its own descriptors, because it has served the connector.
                    _ = loop.add(self)
                    return .nothing
                }
            }
        )
    }

    /// Begins the TLS handshake, which counts towards the time for connecting; without TLS, sends the request.
    func begin(_ state: inout State) -> DeferredEffect {
        guard let client = state.exchange?.tls else { return serve(&state) }
        let now = wallClock.now
        do throws(TLSError) {
            state.link?.tls = try TLSFilter(client.session(host: endpoint.host, port: endpoint.port, now: now))
        } catch { return fail(&state, TransportError(unsent: error)) }
        state.phase = .securing
        state.deadline = connectDeadline
        flush(&state)
        return .nothing
    }

    /// Sends the request over a new connection.
    func serve(_ state: inout State) -> DeferredEffect {
        guard let exchange = state.exchange, serve(exchange, &state) else { return close(&state) }
        flush(&state)
        return .nothing
    }

    // MARK: Serving

    /// Sends the request of an exchange if the connection is idle.
    func begin(_ exchange: SocketExchange) -> Begin {
        let (begin, isLeft): (Begin, Bool) = state.withLock { state in
            guard state.phase == .idle, let link = state.link else { return (.gone, false) }
            guard exchange.board(self), serve(exchange, &state) else { return (.notWanted, false) }
            state.isKept = true
            state.exchange = exchange
            flush(&state)
            return (.begun, link.hasOutput)
        }
        // An idle connection is already watched for reading.
        if isLeft { loop.wake() }
        return begin
    }

    /// - Returns: false if nothing may be sent.
    private func serve(_ exchange: SocketExchange, _ state: inout State) -> Bool {
        guard exchange.beginSending() else { return false }
        state.phase = .busy
        state.deadline = nil
        state.reader = ResponseReader(endpoint.isUpgrade ? .upgrade : exchange.isHead ? .head : .usual)
        state.link?.append(exchange.bytes)
        state.isPaused = false
        if exchange.upload != nil {
            state.upload = .running
            exchange.startUpload(over: self)
        }
        return true
    }

    /// Resumes reading for an exchange whose reader has made room.
    func resumeReading(_ exchange: SocketExchange) {
        let isCurrent = state.withLock { state in
            guard state.exchange === exchange else { return false }
            state.isPaused = false
            return true
        }
        if isCurrent { loop.wake() }
    }

    /// Cancels an exchange. The connection is closed, because the rest of the response cannot be skipped.
    func giveUp(_ exchange: SocketExchange) {
        perform(
            state.withLock { state in
                guard state.exchange === exchange else { return .nothing }
                state.exchange = nil
                return close(&state)
            }
        )
    }

    func closeIdle() {
        perform(
            state.withLock { state in
                guard state.phase == .idle else { return .nothing }
                return close(&state)
            }
        )
    }

    // MARK: The end

    func fail(_ state: inout State, _ error: TransportError) -> DeferredEffect {
        let exchange = state.exchange
        state.exchange = nil
        let deferredEffect = close(&state)
        exchange?.end(.failure(error))
        return deferredEffect
    }

    func close(_ state: inout State) -> DeferredEffect {
        guard state.phase != .over else { return .nothing }
        state.phase = .over
        state.deadline = nil
        state.link.take()?.close()
        state.tunnel = nil
        state.connector.take()?.cancel()
        state.drained.take()?.finish(false)
        return .over(state.pool, again: nil)
    }
}
