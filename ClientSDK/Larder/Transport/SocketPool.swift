import LarderTime
import Synchronization

/// The connections of one transport: a bounded number for each host, kept for the next request, closed when nobody comes.
///
/// Requests that find no connection wait in order. Nothing is called under its lock but an exchange. Safe from any thread.
final class SocketPool: Sendable {
    private struct Lane {
        /// Connections that serve nobody; the one that did so last is last.
        var idle: [(connection: SocketConnection, since: MonotonicTime)] = []
        /// How many connections there are or are being made.
        var open = 0
        /// Those who wait, by ticket; tickets of those who left are missing.
        var waiting: [UInt64: SocketExchange] = [:]
        var firstTicket: UInt64 = 0
        var nextTicket: UInt64 = 0

        /// The first that still wants something.
        mutating func next() -> SocketExchange? {
            while firstTicket < nextTicket {
                defer { firstTicket += 1 }
                if let exchange = waiting.removeValue(forKey: firstTicket), !exchange.isOver { return exchange }
            }
            return nil
        }
    }

    private struct State {
        var lanes: [SocketTarget.Origin: Lane] = [:]
        var isShut = false
    }

    private enum Step {
        case use(SocketConnection)
        case make(instead: SocketConnection?)
        case wait
    }

    let clock: any MonotonicClock
    /// For how long a connection is kept that nobody uses.
    let keepAlive: Duration
    private let resolver: HostResolver
    private let loop: SocketLoop
    private let connectionsPerHost: Int
    private let connectTimeout: Duration
    private let state = Mutex(State())

    init(
        _ configuration: SocketTransport.Configuration,
        clock: any MonotonicClock,
        resolver: HostResolver = .shared,
        loop: SocketLoop = .shared
    ) {
        self.clock = clock
        self.resolver = resolver
        self.loop = loop
        connectionsPerHost = max(1, configuration.connectionsPerHost)
        keepAlive = max(.zero, configuration.keepAlive)
        connectTimeout = max(.zero, configuration.connectTimeout)
    }

    /// How many connections there are, or are being made; and how many of them serve nobody: for tests.
    var counts: (open: Int, idle: Int, waiting: Int) {
        state.withLock { state in
            state.lanes.values.reduce((0, 0, 0)) {
                ($0.0 + $1.open, $0.1 + $1.idle.count, $0.2 + $1.waiting.count)
            }
        }
    }

    /// Finds a connection for an exchange, makes one, or has it wait.
    func start(_ exchange: SocketExchange) {
        let origin = exchange.target.origin
        while true {
            let now = clock.uptime
            let (step, expired): (Step, [SocketConnection]) = state.withLock { state in
                var expired: [SocketConnection] = []
                let step = plan(exchange, &state.lanes[origin, default: Lane()], now, &expired)
                return (step, expired)
            }
            for connection in expired { connection.closeIdle() }
            switch step {
            case .use(let connection):
                switch connection.begin(exchange) {
                case .begun: return
                // It ended just now.
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
            // The longer it has lain, the likelier the server has given it up.
            if now - idle.since < keepAlive { return .use(idle.connection) }
            expired.append(idle.connection)
        }
        if lane.open < connectionsPerHost {
            lane.open += 1
            return .make(instead: nil)
        }
        if !lane.idle.isEmpty {
            // It is counted until it tells of its end.
            lane.open += 1
            return .make(instead: lane.idle.removeFirst().connection)
        }
        exchange.ticket = lane.nextTicket
        lane.waiting[lane.nextTicket] = exchange
        lane.nextTicket += 1
        return .wait
    }

    /// Makes a connection, whose place is counted already.
    private func make(_ exchange: SocketExchange) {
        let origin = exchange.target.origin
        // Whoever looks up holds the pool only for so long.
        resolver.addresses(of: origin) { [weak self] found in
            switch found {
            case .failure(let error):
                exchange.end(.failure(error))
                self?.ended(nil, origin)
            case .success(let addresses):
                guard let self else {
                    return exchange.end(.failure(TransportError(.cancelled, "The transport is gone.")))
                }
                let deadline = clock.uptime + connectTimeout
                let connection = SocketConnection(addresses, exchange, deadline: deadline, pool: self, loop: loop)
                guard connection.start() else { return ended(nil, origin) }
            }
        }
    }

    /// The system cannot watch over connections: whoever waits for one is told so, as there will be none.
    func collapsed(_ origin: SocketTarget.Origin, _ error: TransportError) {
        let waiting = state.withLock { state in
            var waiting: [SocketExchange] = []
            while let exchange = state.lanes[origin]?.next() { waiting.append(exchange) }
            return waiting
        }
        for exchange in waiting { exchange.end(.failure(error)) }
    }

    /// A connection has served, and can serve again.
    func becameIdle(_ connection: SocketConnection) {
        enum Next { case rest, close, serve(SocketExchange), replace(SocketExchange) }
        let origin = connection.origin
        while true {
            let next: Next = state.withLock { state in
                guard !state.isShut, keepAlive > .zero else { return .close }
                guard let exchange = state.lanes[origin, default: Lane()].next() else {
                    let now = clock.uptime
                    state.lanes[origin, default: Lane()].idle.append((connection, now))
                    return .rest
                }
                guard exchange.needsFresh else { return .serve(exchange) }
                state.lanes[origin, default: Lane()].open += 1
                return .replace(exchange)
            }
            switch next {
            case .rest:
                // It may have ended before it was put here, and then nobody would take it out.
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

    /// A connection is no more, or came never to be: its place is free.
    func ended(_ connection: SocketConnection?, _ origin: SocketTarget.Origin) {
        if let connection { forget(idle: connection) }
        let next: SocketExchange? = state.withLock { state in
            guard var lane = state.lanes.removeValue(forKey: origin) else { return nil }
            lane.open -= 1
            var next: SocketExchange?
            if lane.open < connectionsPerHost { next = lane.next() }
            if next != nil { lane.open += 1 }
            if lane.open > 0 || !lane.waiting.isEmpty { state.lanes[origin] = lane }
            return next
        }
        if let next { make(next) }
    }

    private func forget(idle connection: SocketConnection) {
        // Released outside of the lock.
        let forgotten = state.withLock { state -> SocketConnection? in
            guard let index = state.lanes[connection.origin]?.idle.firstIndex(where: { $0.connection === connection })
            else { return nil }
            return state.lanes[connection.origin]?.idle.remove(at: index).connection
        }
        _ = forgotten
    }

    /// An exchange does not wait any more.
    func forget(_ exchange: SocketExchange) {
        guard let ticket = exchange.ticket else { return }
        let forgotten = state.withLock { $0.lanes[exchange.target.origin]?.waiting.removeValue(forKey: ticket) }
        _ = forgotten
    }

    /// Closes what serves nobody, and keeps nothing from now on.
    func shut() {
        let idle = state.withLock { state in
            state.isShut = true
            var idle: [SocketConnection] = []
            for origin in Array(state.lanes.keys) {
                idle += state.lanes[origin]?.idle.map(\.connection) ?? []
                state.lanes[origin]?.idle = []
            }
            return idle
        }
        for connection in idle { connection.closeIdle() }
    }
}
