import LarderHTTP
import LarderHTTPWire

/// The source of a stream of Server-Sent Events. Called on the connection's loop.
package protocol EventStreamHandler: AnyObject, Sendable {
    func opened(_ handle: EventStreamHandle)
    func closed()
    /// Whether the handler sends heartbeats itself, by its own clock.
    var ownsHeartbeat: Bool { get }
}

extension EventStreamHandler {
    package var ownsHeartbeat: Bool { false }
}

/// Sends on an event stream, from any thread. Has no effect after the stream's end.
package struct EventStreamHandle: Sendable {
    package let loop: EventLoop
    let connection: UInt64

    /// Sends complete events in the format of the HTML standard.
    package func send(_ events: [UInt8]) { withChannel { $0.send(events) } }

    /// Ends the stream.
    package func finish() { withChannel { $0.finish() } }

    /// Closes the connection after the pending bytes, without ending the stream.
    package func abort() { withChannel { $0.abort() } }

    /// Sends a heartbeat.
    package func ping() { withChannel { $0.ping() } }

    private func withChannel(_ body: @escaping @Sendable (EventStreamChannel) -> Void) {
        let connection = connection
        loop.execute { [loop] in
            guard let channel = loop.connection(connection)?.eventStreamChannel else { return }
            body(channel)
        }
    }
}

/// A connection whose reply is a stream of events. Confined to its loop.
final class EventStreamChannel {
    private let handler: any EventStreamHandler
    private let isChunked: Bool
    private unowned let connection: Connection
    private var isOver = false

    /// - Parameter isChunked: whether the peer supports chunks; for HTTP/1.0 the stream ends with the connection.
    init(_ handler: any EventStreamHandler, isChunked: Bool, _ connection: Connection) {
        self.handler = handler
        self.isChunked = isChunked
        self.connection = connection
    }

    /// The head with the framing of the stream.
    func framed(_ head: ReplyHead) -> ReplyHead {
        var head = head
        if isChunked { head.append("Transfer-Encoding", "chunked") } else { head.append("Connection", "close") }
        return head
    }

    func start() { handler.opened(EventStreamHandle(loop: connection.loop, connection: connection.id)) }

    func send(_ bytes: [UInt8]) {
        guard !isOver, !bytes.isEmpty else { return }
        connection.sendChannel(bytes)
    }

    /// Events with the framing of the stream.
    func framed(_ events: [UInt8]) -> [UInt8] { isChunked ? ChunkedEncoder.chunk(events) : events }

    /// A comment, which keeps proxies and clients from timing out.
    func heartbeat() {
        if !handler.ownsHeartbeat { ping() }
    }

    func ping() { send(Array(": alive\n\n".utf8)) }

    func finish() {
        guard !isOver else { return }
        isOver = true
        connection.closeAfterContent(isChunked ? ChunkedEncoder.end : [])
        handler.closed()
    }

    func abort() { connection.closeAfterContent() }

    func connectionClosed() {
        guard !isOver else { return }
        isOver = true
        handler.closed()
    }
}

extension Connection {
    var eventStreamChannel: EventStreamChannel? { if case .eventStream(let channel) = mode { channel } else { nil } }
    var webSocketChannel: WebSocketChannel? { if case .webSocket(let channel) = mode { channel } else { nil } }
}
