import LarderHTTP
import LarderHTTPWire
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
        case busy
        case idle
        case over
    }

    /// A body that is read while it is sent.
    enum Upload {
        /// There is none, or all of it was written or is in `output`.
        case none
        case running
        /// The rest is not sent, so the connection cannot be reused.
        case stopped
    }

    struct State {
        var phase = Phase.connecting
        var descriptor: Int32?
        /// The addresses that were not tried yet.
        var addresses: ArraySlice<SocketCall.Address>
        /// The deadline for connecting to the current address, or for an idle connection.
        var deadline: MonotonicTime?
        var exchange: SocketExchange?
        var reader = ResponseReader()
        var output: [UInt8] = []
        var outputStart = 0
        /// Why sending failed. Received bytes may still be unread.
        var outputFailure: String?
        var upload = Upload.none
        /// Set when `output` is empty, or with false when nothing more can be written.
        var drained: Pending<Bool>?
        var isPaused = false
        /// Whether it served an exchange before, so that the server may have closed it since.
        var isKept = false
        var buffer: [UInt8] = []
        weak var pool: SocketPool?

        var pendingOutput: Int { output.count - outputStart }
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
    private let jumps: ManualClock.Registration?
    let loop: SocketLoop
    private let deadline: MonotonicTime
    let state: Mutex<State>

    /// - Parameter deadline: the deadline for connecting.
    init(
        _ addresses: [SocketCall.Address],
        _ exchange: SocketExchange,
        deadline: MonotonicTime,
        pool: SocketPool,
        loop: SocketLoop
    ) {
        endpoint = exchange.endpoint
        clock = pool.clock
        keepAlive = pool.keepAlive
        self.loop = loop
        jumps = clock.onJump { loop.wake() }
        self.deadline = deadline
        var first = State(addresses: addresses[...])
        first.exchange = exchange
        first.pool = pool
        state = Mutex(first)
    }

    /// Whether it has ended.
    var isOver: Bool { state.withLock { $0.phase == .over } }

    /// Begins to connect on the loop's thread; false if the exchange is over.
    func start() -> Bool {
        guard let exchange = state.withLock({ $0.exchange }), exchange.board(self) else { return false }
        guard loop.add(self) else {
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
            var interest = SocketInterest()
            switch state.phase {
            case .over: return nil
            case .connecting:
                interest.descriptor = state.descriptor
                interest.writes = true
                // The first address is tried on the loop's thread, so that its failure is not handled by a caller.
                if state.descriptor == nil { interest.timeLeft = .zero }
            case .busy, .idle:
                interest.reads = !state.isPaused
                interest.writes = state.pendingOutput > 0
                // poll(2) reports a closed socket repeatedly even without an interest.
                interest.descriptor = interest.reads || interest.writes ? state.descriptor : nil
            }
            if interest.timeLeft == nil, let deadline = state.deadline { interest.timeLeft = deadline - clock.uptime }
            return interest
        }
    }

    func ready() {
        perform(
            state.withLock { state in
                guard let descriptor = state.descriptor else { return .nothing }
                if state.phase == .connecting {
                    if let failure = SocketCall.connectionFailure(descriptor) {
                        return connectNext(&state, TransportError(.unreachable, failure.description))
                    }
                    connected(&state)
                }
                flush(&state)
                return read(&state)
            }
        )
    }

    func deadlineReached() {
        perform(
            state.withLock { state in
                if state.phase == .connecting, state.descriptor == nil {
                    return connectNext(&state, TransportError(.unreachable, "'\(endpoint.host)' has no address."))
                }
                guard let deadline = state.deadline, clock.uptime >= deadline else { return .nothing }
                guard state.phase == .connecting else { return close(&state) }
                let late = "'\(endpoint.host)' did not take the connection in time."
                return connectNext(&state, TransportError(.unreachable, late))
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

    /// Connects to the next address, which gets a share of the remaining time.
    private func connectNext(_ state: inout State, _ reason: TransportError) -> DeferredEffect {
        var reason = reason
        state.deadline = nil
        if let descriptor = state.descriptor { SocketCall.shut(descriptor) }
        state.descriptor = nil
        while let address = state.addresses.popFirst() {
            switch SocketCall.connect(address) {
            case .failure(let error): reason = TransportError(.unreachable, error.description)
            case .success(let descriptor):
                state.descriptor = descriptor
                let now = clock.uptime
                state.deadline = now + max(.zero, deadline - now) / (state.addresses.count + 1)
                return .nothing
            }
        }
        return fail(&state, reason)
    }

    private func connected(_ state: inout State) {
        state.addresses = []
        guard let exchange = state.exchange else { return }
        serve(exchange, &state)
    }

    // MARK: Serving

    /// Sends the request of an exchange if the connection is idle.
    func begin(_ exchange: SocketExchange) -> Begin {
        let (begin, isLeft): (Begin, Bool) = state.withLock { state in
            guard state.phase == .idle, state.descriptor != nil else { return (.gone, false) }
            guard exchange.board(self) else { return (.notWanted, false) }
            state.isKept = true
            state.exchange = exchange
            serve(exchange, &state)
            flush(&state)
            return (.begun, state.pendingOutput > 0)
        }
        // An idle connection is already watched for reading.
        if isLeft { loop.wake() }
        return begin
    }

    private func serve(_ exchange: SocketExchange, _ state: inout State) {
        state.phase = .busy
        state.deadline = nil
        state.reader = ResponseReader(isHead: exchange.isHead)
        state.output = exchange.bytes
        state.outputStart = 0
        state.isPaused = false
        guard exchange.upload != nil else { return }
        state.upload = .running
        exchange.startUpload(over: self)
    }

    /// Resumes reading for an exchange whose reader has made room.
    func resumeReading(_ exchange: SocketExchange) {
        let isOurs = state.withLock { state in
            guard state.exchange === exchange else { return false }
            state.isPaused = false
            return true
        }
        if isOurs { loop.wake() }
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

    /// Closes an idle connection.
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
        if let descriptor = state.descriptor { SocketCall.shut(descriptor) }
        state.descriptor = nil
        state.addresses = []
        state.output = []
        state.outputStart = 0
        state.buffer = []
        state.drained.take()?.finish(false)
        return .over(state.pool, again: nil)
    }
}
