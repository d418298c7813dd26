package import LarderHTTP
package import LarderTime
import Synchronization

/// Answers requests. Called on the loops' threads: what it does there, everybody on the loop waits for.
package protocol ExchangeHandler: Sendable {
    /// Answers a complete request, or returns nil and keeps `exchange`, which must then be completed once, from any thread.
    func handle(_ request: Request, _ exchange: Exchange) -> Reply?

    /// The reply to what was refused before it was a request.
    func refused(_ refusal: Refusal) -> Response

    /// Whether `finished` is of interest.
    var wantsRecords: Bool { get }

    /// An exchange is over: its last byte was given to the system, or its connection is gone.
    func finished(_ record: ExchangeRecord)
}

/// What became of an exchange.
package struct ExchangeRecord: Sendable {
    package let request: Request
    package let status: Status
    /// Bytes of the reply's head and body.
    package let bytesSent: Int
    package let started: MonotonicTime
    package let ended: MonotonicTime
    /// Whether the whole reply was given to the system.
    package let isComplete: Bool
}

/// A place on a connection where a reply is owed.
package struct Exchange: Sendable {
    package let loop: EventLoop
    let connection: UInt64
    let index: Int

    /// Answers the exchange, from any thread. Harmless when the peer has gone.
    package func complete(_ reply: Reply) {
        let (connection, index) = (connection, index)
        loop.execute { [loop] in loop.connection(connection)?.complete(index, reply) }
    }
}

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

    /// Runs `body` on every loop: one wake-up each.
    package func executeOnAllLoops(_ body: @escaping @Sendable (EventLoop) -> Void) {
        for loop in loops { loop.execute { body(loop) } }
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
