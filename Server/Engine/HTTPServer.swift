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

    private enum Port {
        case listening(Listener)
        case paused(PortReservation?)
        case closed
    }

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
        port = Mutex(.listening(listener))
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
        port.withLock { $0 = .closed }
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

    /// Closes the port without touching connections: who connects is refused.
    package func pauseListening() {
        port.withLock { port in
            guard case .listening(let listener) = port else { return }
            port = .paused(listener.reservation())
        }
        for loop in loops { loop.execute { loop.replaceListener(nil) } }
    }

    /// Opens the port again, if it is still free.
    package func resumeListening() {
        let next = port.withLock { port -> Listener? in
            guard case .paused = port, let listener = try? Listener(host: address.host, port: address.port) else {
                return nil
            }
            port = .listening(listener)
            return listener
        }
        guard let next else { return }
        for loop in loops { loop.execute { loop.replaceListener(next) } }
    }
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
