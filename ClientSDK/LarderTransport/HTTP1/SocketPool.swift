import LarderHTTP
import LarderTime
import Synchronization

/// The connections of one transport: a bounded number for each host, reused and closed after an idle time.
///
/// Requests without a connection wait in order. Only exchanges are called under its lock. Safe from any thread.
final class SocketPool: Sendable {
    private struct Lane {
        /// Idle connections; the last one was used last.
        var idle: [(connection: SocketConnection, since: MonotonicTime)] = []
        /// The number of connections, including those that are connecting.
        var open = 0
        /// Waiting exchanges, the first one first.
        var waiting: [SocketExchange] = []

        /// Removes the first waiting exchange that is not over.
        mutating func next() -> SocketExchange? {
            while !waiting.isEmpty {
                let exchange = waiting.removeFirst()
                if !exchange.isOver { return exchange }
            }
            return nil
        }
    }

    private struct State {
        var lanes: [Endpoint: Lane] = [:]
        var isShut = false
    }

    private enum Step {
        case use(SocketConnection)
        case make(instead: SocketConnection?)
        case wait
    }

    let clock: any MonotonicClock
    /// The time at which certificates must be valid.
    let wallClock: any WallClock
    /// How long an idle connection is kept.
    let keepAlive: Duration
    let resolver: HostResolver
    let loop: SocketLoop
    private let connectionsPerHost: Int
    private let connectTimeout: Duration
    private let state = Mutex(State())

    init(
        _ configuration: SocketTransport.Configuration,
        clock: any MonotonicClock,
        wallClock: any WallClock = SystemWallClock(),
        resolver: HostResolver = .shared,
        loop: SocketLoop = .shared
    ) {
        self.clock = clock
        self.wallClock = wallClock
        self.resolver = resolver
        self.loop = loop
        connectionsPerHost = max(1, configuration.connectionsPerHost)
        keepAlive = max(.zero, configuration.keepAlive)
        connectTimeout = max(.zero, configuration.connectTimeout)
    }

    /// The numbers of connections, idle connections and waiting exchanges, for tests.
    var counts: (open: Int, idle: Int, waiting: Int) {
        state.withLock { state in
            state.lanes.values.reduce((0, 0, 0)) {
                ($0.0 + $1.open, $0.1 + $1.idle.count, $0.2 + $1.waiting.count)
            }
        }
    }

    /// Assigns an idle or new connection to an exchange, or queues it.
    func start(_ exchange: SocketExchange) {
        let endpoint = exchange.endpoint
        while true {
            let now = clock.uptime
            let (step, expired): (Step, [SocketConnection]) = state.withLock { state in
                var expired: [SocketConnection] = []
                let step = plan(exchange, &state.lanes[endpoint, default: Lane()], now, &expired)
                return (step, expired)
            }
            for connection in expired { connection.closeIdle() }
            switch step {
            case .use(let connection):
                switch connection.begin(exchange) {
                case .begun: return
                // It ended meanwhile.
                case .gone: continue
                case .notWanted: return becameIdle(connection)
                }
            case .make(let instead):
                instead?.closeIdle()
                return make(exchange)
            case .wait: return
            }
        }
    }

    private func plan(
        _ exchange: SocketExchange,
        _ lane: inout Lane,
        _ now: MonotonicTime,
        _ expired: inout [SocketConnection]
    ) -> Step {
        let needsFresh = exchange.needsFresh
        while !needsFresh, let idle = lane.idle.popLast() {
            // The server may have closed a connection that was idle for longer.
            if now - idle.since < keepAlive { return .use(idle.connection) }
            expired.append(idle.connection)
        }
        if lane.open < connectionsPerHost {
            lane.open += 1
            return .make(instead: nil)
        }
        if !lane.idle.isEmpty {
            // The replaced connection is counted until `ended`.
            lane.open += 1
            return .make(instead: lane.idle.removeFirst().connection)
        }
        lane.waiting.append(exchange)
        return .wait
    }

    /// Creates a connection that is already counted.
    private func make(_ exchange: SocketExchange) {
        let endpoint = exchange.endpoint
        // A slow lookup does not retain the pool.
        resolver.addresses(of: endpoint.peer) { [weak self] found in
            switch found {
            case .failure(let error):
                exchange.end(.failure(TransportError(.unreachable, endpoint.explained(error))))
                self?.ended(nil, endpoint)
            case .success(let addresses):
                guard let self else {
                    return exchange.end(.failure(TransportError(.cancelled, "The transport was released.")))
                }
                let connection = SocketConnection(
                    addresses,
                    exchange,
                    connectDeadline: clock.uptime + (exchange.connectTimeout ?? connectTimeout),
                    pool: self,
                    loop: loop
                )
                guard connection.start() else { return ended(nil, endpoint) }
            }
        }
    }

    /// Fails all waiting exchanges of a host, because the loop has no descriptor.
    func collapsed(_ endpoint: Endpoint, _ error: TransportError) {
        let waiting = state.withLock { state in
            var waiting: [SocketExchange] = []
            while let exchange = state.lanes[endpoint]?.next() { waiting.append(exchange) }
            return waiting
        }
        for exchange in waiting { exchange.end(.failure(error)) }
    }

    /// Reuses a connection that has completed an exchange.
    func becameIdle(_ connection: SocketConnection) {
        enum Next { case rest, close, serve(SocketExchange), replace(SocketExchange) }
        let endpoint = connection.endpoint
        while true {
            let next: Next = state.withLock { state in
                guard !state.isShut, keepAlive > .zero else { return .close }
                guard let exchange = state.lanes[endpoint, default: Lane()].next() else {
                    let now = clock.uptime
                    state.lanes[endpoint, default: Lane()].idle.append((connection, now))
                    return .rest
                }
                guard exchange.needsFresh else { return .serve(exchange) }
                state.lanes[endpoint, default: Lane()].open += 1
                return .replace(exchange)
            }
            switch next {
            case .rest:
                // A connection that ended before it was added would never be removed.
                if connection.isOver { forget(idle: connection) }
                return
            case .close: return connection.closeIdle()
            case .replace(let exchange):
                connection.closeIdle()
                return make(exchange)
            case .serve(let exchange):
                switch connection.begin(exchange) {
                case .begun: return
                case .gone: return start(exchange)
                case .notWanted: continue
                }
            }
        }
    }

    /// Frees the place of a connection that ended or was never made.
    func ended(_ connection: SocketConnection?, _ endpoint: Endpoint) {
        if let connection { forget(idle: connection) }
        let next: SocketExchange? = state.withLock { state in
            guard var lane = state.lanes.removeValue(forKey: endpoint) else { return nil }
            lane.open -= 1
            var next: SocketExchange?
            if lane.open < connectionsPerHost { next = lane.next() }
            if next != nil { lane.open += 1 }
            if lane.open > 0 || !lane.waiting.isEmpty { state.lanes[endpoint] = lane }
            return next
        }
        if let next { make(next) }
    }

    private func forget(idle connection: SocketConnection) {
        // Released outside of the lock.
        let forgotten = state.withLock { state -> SocketConnection? in
            guard let index = state.lanes[connection.endpoint]?.idle.firstIndex(where: { $0.connection === connection })
            else { return nil }
            return state.lanes[connection.endpoint]?.idle.remove(at: index).connection
        }
        _ = forgotten
    }

    /// Removes a waiting exchange.
    func forget(_ exchange: SocketExchange) {
        // The caller has it, so that it is not released under the lock.
        state.withLock { $0.lanes[exchange.endpoint]?.waiting.removeAll { $0 === exchange } }
    }

    /// Closes idle connections and keeps none from now on.
    func shut() {
        let idle = state.withLock { state in
            state.isShut = true
            var idle: [SocketConnection] = []
            for endpoint in Array(state.lanes.keys) {
                idle += state.lanes[endpoint]?.idle.map(\.connection) ?? []
                state.lanes[endpoint]?.idle = []
            }
            return idle
        }
        for connection in idle { connection.closeIdle() }
    }
}
