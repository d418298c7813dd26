import LarderHTTP
import LarderTime
import Synchronization

/// One connection to a server: it is made for an exchange, serves it, and others after it.
///
/// All state is under one lock. Requests are written by whoever brings them, as far as the network takes them; the loop's
/// thread reads. An exchange and its reader are told under the lock, which only puts a waiting task in its executor's queue;
/// the pool is told when the lock is free again.
final class SocketConnection: SocketHandler {
    enum Phase {
        case connecting
        case busy
        case idle
        case over
    }

    struct State {
        var phase = Phase.connecting
        var descriptor: Int32?
        /// Those that were not tried yet.
        var addresses: ArraySlice<SocketCall.Address>
        /// When the present address has had its share of time, or when nobody has used the connection for too long.
        var deadline: MonotonicTime?
        var exchange: SocketExchange?
        var reader = ReplyReader()
        var output: [UInt8] = []
        var outputStart = 0
        /// Why the network takes nothing more. What the peer said before may still be there to be read.
        var outputFailure: String?
        var isPaused = false
        /// Whether it has served before: then it may have died since.
        var isKept = false
        var buffer: [UInt8] = []
        weak var pool: SocketPool?

        var pendingOutput: Int { output.count - outputStart }
    }

    /// What is to be done when the lock is free again.
    enum Aftermath {
        case nothing
        /// A reply is whole, and the connection free or closed. First the pool learns of that, so that the next request of
        /// whoever waits for this reply finds the connection.
        case served(SocketPool?, isFree: Bool, SocketExchange, [ReplyReader.Event])
        case over(SocketPool?, again: SocketExchange?)
    }

    /// What has become of an exchange that was to go over it.
    enum Begin {
        case begun
        /// The connection has ended.
        case gone
        /// Nobody waits for the reply any more.
        case notWanted
    }

    let origin: SocketTarget.Origin
    let clock: any MonotonicClock
    let keepAlive: Duration
    private let jumps: ClockRegistration?
    private let loop: SocketLoop
    private let deadline: MonotonicTime
    private let state: Mutex<State>

    /// - Parameter deadline: when it is too late to be connected.
    init(
        _ addresses: [SocketCall.Address],
        _ exchange: SocketExchange,
        deadline: MonotonicTime,
        pool: SocketPool,
        loop: SocketLoop
    ) {
        origin = exchange.target.origin
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

    /// Begins to connect, on the loop's thread; false where nobody waits for it.
    func start() -> Bool {
        guard let exchange = state.withLock({ $0.exchange }), exchange.board(self) else { return false }
        guard loop.add(self) else {
            let error = TransportError(.unreachable, "The system has no descriptor left.")
            let pool = state.withLock { $0.pool }
            // First those who wait: none of them is to try the same in vain.
            pool?.collapsed(origin, error)
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
                // The first address is tried on the loop's thread, so that its failure is nobody's who asks for a connection.
                if state.descriptor == nil { interest.timeLeft = .zero }
            case .busy, .idle:
                interest.reads = !state.isPaused
                interest.writes = state.pendingOutput > 0
                // Without any wish a socket that was hung up would be reported again and again.
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
                    return connectNext(&state, TransportError(.unreachable, "«\(origin.host)» has no address."))
                }
                guard let deadline = state.deadline, clock.uptime >= deadline else { return .nothing }
                guard state.phase == .connecting else { return close(&state) }
                let late = "«\(origin.host)» did not take the connection in time."
                return connectNext(&state, TransportError(.unreachable, late))
            }
        )
    }

    private func perform(_ aftermath: Aftermath) {
        switch aftermath {
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
            pool?.ended(self, origin)
            guard let again else { return }
            guard let pool else {
                return again.end(.failure(TransportError(.interrupted, "The connection had died before.")))
            }
            pool.start(again)
        }
    }

    // MARK: Connecting

    /// Tries the next address; each gets its share of the time that is left.
    private func connectNext(_ state: inout State, _ reason: TransportError) -> Aftermath {
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

    /// Sends an exchange's request, if the connection is there and free.
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
        // While it was idle it was watched already for what comes.
        if isLeft { loop.wake() }
        return begin
    }

    private func serve(_ exchange: SocketExchange, _ state: inout State) {
        state.phase = .busy
        state.deadline = nil
        state.reader = ReplyReader(isHead: exchange.isHead)
        state.output = exchange.bytes
        state.outputStart = 0
        state.isPaused = false
    }

    /// Reads on for an exchange whose reader has made room.
    func resumeReading(_ exchange: SocketExchange) {
        let isOurs = state.withLock { state in
            guard state.exchange === exchange else { return false }
            state.isPaused = false
            return true
        }
        if isOurs { loop.wake() }
    }

    /// Nobody wants an exchange's reply any more. What is still to come of it cannot be told from another, so this is the end.
    func giveUp(_ exchange: SocketExchange) {
        perform(
            state.withLock { state in
                guard state.exchange === exchange else { return .nothing }
                state.exchange = nil
                return close(&state)
            }
        )
    }

    /// Closes it, if it serves nobody.
    func closeIdle() {
        perform(
            state.withLock { state in
                guard state.phase == .idle else { return .nothing }
                return close(&state)
            }
        )
    }

    // MARK: What leaves

    /// Writes what the network takes; the loop does the rest.
    private func flush(_ state: inout State) {
        guard state.phase == .busy, let descriptor = state.descriptor else { return }
        while state.pendingOutput > 0 {
            switch SocketCall.send(descriptor, state.output, from: state.outputStart) {
            case .count(let count): state.outputStart += count
            case .wouldBlock: return
            case .failed(let reason):
                // The end comes with what is read: there the peer may have said why it goes.
                state.outputFailure = reason
                state.outputStart = state.output.count
            }
        }
        state.output = []
        state.outputStart = 0
    }

    // MARK: The end

    func fail(_ state: inout State, _ error: TransportError) -> Aftermath {
        let exchange = state.exchange
        state.exchange = nil
        let aftermath = close(&state)
        exchange?.end(.failure(error))
        return aftermath
    }

    func close(_ state: inout State) -> Aftermath {
        guard state.phase != .over else { return .nothing }
        state.phase = .over
        state.deadline = nil
        if let descriptor = state.descriptor { SocketCall.shut(descriptor) }
        state.descriptor = nil
        state.addresses = []
        state.output = []
        state.outputStart = 0
        state.buffer = []
        return .over(state.pool, again: nil)
    }
}
