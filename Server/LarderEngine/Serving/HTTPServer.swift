import Dispatch
package import LarderTime
import Synchronization

/// The limits and clocks of a server.
package struct ServerConfiguration: Sendable {
    /// An IP address, or `localhost` for 127.0.0.1.
    package var host = "127.0.0.1"
    /// 0 selects any free port.
    package var port = 0
    package var loops = 1
    package var headBytesMaximum = 16 << 10
    package var bodyBytesMaximum = 1 << 20
    package var connectionsMaximum = 10_000
    /// The maximum time for a request to arrive; it begins again after each 256 KiB of a body.
    package var headReadTimeout: Duration = .seconds(10)
    /// The maximum idle time between exchanges.
    package var idleTimeout: Duration = .seconds(75)
    /// The maximum number of bytes that wait for a slow reader; beyond it the reader is disconnected.
    package var outputBytesMaximum = 4 << 20
    package var webSocketMessageBytesMaximum = 1 << 20
    /// The maximum silence on a WebSocket or an event stream before a heartbeat.
    package var heartbeat: Duration = .seconds(30)
    /// The maximum number of connections of each loop to one other server.
    package var upstreamConnectionsMaximum = 128
    /// The maximum number of requests of each loop that wait for one of these connections.
    package var upstreamWaitingMaximum = 1_024
    /// Begins https and wss on the same port, besides http and ws, with a client that has connected; nil: they are not served.
    package var tls: SecureSession.Beginning?
    package var poller = PollerChoice.epoll
    package var monotonic: any MonotonicClock = SystemMonotonicClock()
    package var wall: any WallClock = SystemWallClock()
    /// Whether the loops have no threads: the caller calls `EventLoop.step`. For a simulation on one thread.
    package var isStepped = false

    package init() {}
}

/// An HTTP/1.1 server with WebSockets and Server-Sent Events, with its own event loops.
///
/// Safe from any thread. Connections belong to the loop that accepted them.
package final class HTTPServer: Sendable {
    package let address: SocketAddress
    package let loops: [EventLoop]
    private let stopping = Mutex(false)
    private let port: Mutex<Port>
    private let connections: ConnectionCounter

    private struct Port {
        /// Nil after the stop.
        var listener: Listener?
        /// The number of pauses that were not resumed.
        var pauseCount = 0
    }

    /// The retry interval for opening the port again.
    private static let reopenInterval = Duration.milliseconds(100)

    /// Starts listening and serving.
    ///
    /// - Throws: if the address cannot be used.
    package init(_ configuration: ServerConfiguration, handler: any ExchangeHandler) throws(EngineError) {
        let listener = try Listener(host: configuration.host, port: configuration.port)
        connections = ConnectionCounter()
        let workers = WorkerThreads()
        var loops: [EventLoop] = []
        for index in 0..<max(1, configuration.loops) {
            loops.append(try EventLoop(index, configuration, listener, connections, workers, handler))
        }
        address = listener.address
        port = Mutex(Port(listener: listener))
        self.loops = loops
        for loop in loops { loop.start() }
    }

    /// Runs a job on each loop, one after another, and `last` after the last one. Loops that have ended are left out.
    package static func visit(
        _ loops: ArraySlice<EventLoop>,
        _ job: @escaping @Sendable (EventLoop) -> Void = { _ in },
        then last: @escaping @Sendable () -> Void
    ) {
        guard let loop = loops.first else { return last() }
        let next: @Sendable () -> Void = { visit(loops.dropFirst(), job, then: last) }
        loop.execute(
            {
                job(loop)
                next()
            },
            orElse: next
        )
    }

    /// Blocks until the loops have run the jobs that they have, and those that follow from these, in at most `turnsMaximum` turns: a loop that
    /// always has work does not hold the caller up. Returns at once on a thread of a loop, and for stepped loops.
    package static func settle(_ loops: [EventLoop]) {
        guard !loops.contains(where: { $0.isCurrent || $0.isStepped }) else { return }
        // A job of one loop may have given the next one to a loop that was idle when it was asked.
        var (turns, idleTurns) = (0, 0)
        while idleTurns < 2, turns < turnsMaximum {
            let turn = Turn()
            visit(
                loops[...],
                { if $0.hasJobs { turn.hasFoundJobs.store(true, ordering: .relaxed) } },
                then: { turn.ended.signal() }
            )
            turn.ended.wait()
            idleTurns = turn.hasFoundJobs.load(ordering: .relaxed) ? 0 : idleTurns + 1
            turns += 1
        }
    }

    private static let turnsMaximum = 100

    /// One visit of `settle` to all loops.
    private final class Turn: Sendable {
        let hasFoundJobs = Atomic(false)
        let ended = DispatchSemaphore(value: 0)
    }

    package var connectionCount: Int { connections.openCount }

    /// Stops gracefully: accepts no new connections, answers every request that has arrived, closes WebSockets with 1001 and
    /// ends streams; connections that remain after `grace` are closed. Returns when everything is closed; further calls wait
    /// too.
    package func stop(grace: Duration = .seconds(5)) async {
        let isFirst = stopping.withLock { stopping in
            defer { stopping = true }
            return !stopping
        }
        let listener = port.withLock { port in port.listener.take() }
        // Before the last loop ends, so that no connection is accepted that nobody answers.
        if let listener { Self.visit(loops[...], { $0.listen(false) }, then: { listener.pause() }) }
        await withTaskGroup(of: Void.self) { group in
            for loop in loops {
                group.addTask {
                    await withCheckedContinuation { continuation in
                        loop.whenEnded { continuation.resume() }
                        if isFirst { loop.execute { loop.beginStop(grace: grace) } }
                    }
                }
            }
        }
    }

    /// Closes the port; existing connections stay. Each call needs one `resumeListening()`.
    ///
    /// Returns immediately. The port is closed when each loop has finished its current turn.
    package func pauseListening() {
        port.withLock { port in
            port.pauseCount += 1
            guard port.pauseCount == 1, let listener = port.listener else { return }
            Self.visit(loops[...], { $0.listen(false) }, then: { listener.pause() })
        }
    }

    /// Reverts one `pauseListening()`. After the last one the port is opened again; while another process listens on it, the
    /// server retries every 100 ms of its monotonic clock.
    ///
    /// Returns immediately. A call without a pause has no effect.
    package func resumeListening() {
        let isLast = port.withLock { port in
            guard port.pauseCount > 0 else { return false }
            port.pauseCount -= 1
            return port.pauseCount == 0
        }
        // After the jobs that close the port: it is not free before.
        if isLast { Self.visit(loops[...], then: { [weak self] in self?.reopen() }) }
    }

    private func reopen() {
        let mustRetry = port.withLock { port in
            guard let listener = port.listener, port.pauseCount == 0 else { return false }
            guard listener.resume() else { return true }
            for loop in loops { loop.execute { loop.listen(true) } }
            return false
        }
        guard mustRetry else { return }
        _ = loops[0].schedule(after: Self.reopenInterval) { [weak self] in self?.reopen() }
    }
}

/// The number of connections on all loops, and the source of their numbers.
final class ConnectionCounter: Sendable {
    private let count = Atomic<Int>(0)
    private let lastID = Atomic<UInt64>(0)

    func enter() -> (id: UInt64, count: Int) {
        let id = lastID.add(1, ordering: .relaxed).newValue
        return (id, count.add(1, ordering: .relaxed).newValue)
    }

    var openCount: Int { count.load(ordering: .relaxed) }

    func leave() { count.subtract(1, ordering: .relaxed) }
}
