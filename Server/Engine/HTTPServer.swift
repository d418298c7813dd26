package import LarderTime
import Synchronization

/// The limits and parts of a server.
package struct ServerConfiguration: Sendable {
    /// An IP address, or `localhost` for 127.0.0.1.
    package var host = "127.0.0.1"
    /// 0 takes any that is free.
    package var port = 0
    package var loops = 1
    package var headBytesMaximum = 16 << 10
    package var bodyBytesMaximum = 1 << 20
    package var connectionsMaximum = 10_000
    /// How long a request may take to arrive.
    package var headReadTimeout: Duration = .seconds(10)
    /// How long a connection may be silent between exchanges.
    package var idleTimeout: Duration = .seconds(75)
    /// What may wait for a slow reader before it is disconnected.
    package var outputBytesMaximum = 4 << 20
    package var webSocketMessageBytesMaximum = 1 << 20
    /// How long a WebSocket or an event stream may be silent before it is asked for a sign of life, or given one.
    package var heartbeat: Duration = .seconds(30)
    package var poller = PollerChoice.automatic
    package var monotonic: any MonotonicClock = SystemMonotonicClock()
    package var wall: any WallClock = SystemWallClock()

    package init() {}
}

/// An HTTP/1.1 server with WebSockets and Server-Sent Events, on event loops of its own.
///
/// Safe from any thread. Connections belong to the loop that accepted them.
package final class HTTPServer: Sendable {
    package let address: SocketAddress
    package let loops: [EventLoop]
    private let stopping = Mutex(false)
    private let port: Mutex<Port>

    private struct Port {
        /// The socket that accepts connections; nil while the port is closed.
        var listener: Listener?
        /// Keeps the port while it is closed.
        var reservation: PortReservation?
        /// How many times the port was paused and not resumed.
        var pauseCount = 0
        var isStopped = false
    }

    /// After how long a port is tried again that could not be opened.
    private static let reopenInterval = Duration.milliseconds(100)

    /// Starts listening and serving.
    ///
    /// - Throws: when the address cannot be listened on.
    package init(_ configuration: ServerConfiguration, handler: any ExchangeHandler) throws(EngineError) {
        let listener = try Listener(host: configuration.host, port: configuration.port)
        let census = ConnectionCensus()
        var loops: [EventLoop] = []
        for index in 0..<max(1, configuration.loops) {
            loops.append(try EventLoop(index, configuration, listener, census, handler))
        }
        address = listener.address
        port = Mutex(Port(listener: listener))
        self.loops = loops
        for loop in loops { loop.start() }
    }

    /// Stops in order: no new connections, an answer to every request that has arrived, 1001 for WebSockets, an end for
    /// streams; what is left after `grace` is cut. Returns when everything is closed; calling it again waits too.
    package func stop(grace: Duration = .seconds(5)) async {
        let isFirst = stopping.withLock { stopping in
            defer { stopping = true }
            return !stopping
        }
        port.withLock { port in
            port.listener = nil
            port.reservation = nil
            port.isStopped = true
        }
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

    /// Closes the port; connections that are there stay. Each call needs one of `resumeListening()`.
    ///
    /// Returns at once. The port is closed when each loop has finished its present turn.
    package func pauseListening() {
        port.withLock { port in
            port.pauseCount += 1
            guard let listener = port.listener.take() else { return }
            port.reservation = listener.reservation()
            let loopsLeft = LoopCount(loops.count)
            for loop in loops {
                loop.execute {
                    loop.replaceListener(nil)
                    if loopsLeft.decrement() == 0 { listener.stop() }
                }
            }
        }
    }

    /// Takes back one call of `pauseListening()`. After the last the port is opened again; while another process listens on
    /// it, that is tried again every 100 ms of the server's monotonic clock.
    ///
    /// Returns at once. A call without a pause does nothing.
    package func resumeListening() {
        let isLast = port.withLock { port in
            guard port.pauseCount > 0 else { return false }
            port.pauseCount -= 1
            return port.pauseCount == 0
        }
        guard isLast else { return }
        // Behind the jobs that close the port: it is not free before.
        let loopsLeft = LoopCount(loops.count)
        for loop in loops {
            loop.execute { [weak self] in
                if loopsLeft.decrement() == 0 { self?.reopen() }
            }
        }
    }

    private func reopen() {
        let mustRetry = port.withLock { port in
            guard port.listener == nil, port.pauseCount == 0, !port.isStopped else { return false }
            guard let next = try? Listener(host: address.host, port: address.port) else { return true }
            port = Port(listener: next)
            for loop in loops { loop.execute { loop.replaceListener(next) } }
            return false
        }
        guard mustRetry else { return }
        _ = loops[0].schedule(after: Self.reopenInterval) { [weak self] in self?.reopen() }
    }
}

/// Counts the loops that have yet to do something.
private final class LoopCount: Sendable {
    private let left: Atomic<Int>

    init(_ count: Int) { left = Atomic(count) }

    /// - Returns: how many are left.
    func decrement() -> Int { left.subtract(1, ordering: .acquiringAndReleasing).newValue }
}

/// How many connections there are on all loops, and their numbers.
final class ConnectionCensus: Sendable {
    private let count = Atomic<Int>(0)
    private let lastID = Atomic<UInt64>(0)

    func enter() -> (id: UInt64, count: Int) {
        let id = lastID.add(1, ordering: .relaxed).newValue
        return (id, count.add(1, ordering: .relaxed).newValue)
    }

    func leave() { count.subtract(1, ordering: .relaxed) }
}
