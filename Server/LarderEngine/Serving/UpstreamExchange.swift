package import LarderHTTP
package import LarderHTTPWire
import LarderTime

/// A request to another server, as bytes.
package struct UpstreamRequest: Sendable {
    /// Request line and field lines with the empty line.
    package let head: [UInt8]
    package let body: [UInt8]
    package let method: Method
    /// Whether the request asks for a WebSocket.
    package let isUpgrade: Bool

    package init(method: Method, head: [UInt8], body: [UInt8], isUpgrade: Bool = false) {
        self.method = method
        self.head = head
        self.body = body
        self.isUpgrade = isUpgrade
    }

    /// Whether the request may be sent again if a reused connection was closed before the first byte of the response (RFC 9110
    /// §9.2.2).
    var isIdempotent: Bool { [.get, .head, .put, .delete, .options].contains(method) }
}

/// What arrives for a request to another server.
package enum UpstreamEvent: Sendable {
    /// The head of the final response; 101 only for an accepted upgrade.
    case head(ResponseHead)
    /// A piece of the content, or bytes after a 101.
    case content([UInt8])
    /// The response is complete, or the peer has closed the connection after a 101.
    case end
    case failed(UpstreamFailure)
}

/// Why a request to another server has no complete response.
package enum UpstreamFailure: Error, Sendable, Hashable {
    case unreachable(String)
    case timedOut(String)
    /// The response is not valid HTTP/1, or ended early.
    case invalid(String)
    /// Too many requests wait for a connection.
    case tooMany(Int)
}

/// A request in flight to another server. Safe from any thread; has no effect after the exchange's end.
package struct UpstreamTask: Sendable {
    package let loop: EventLoop
    let id: UInt64

    /// Closes the connection, or gives up the place in the queue for one; nothing more is received.
    package func cancel() {
        loop.execute { [loop, id] in loop.cancelUpstream(id) }
    }

    /// Sends bytes after a 101.
    package func send(_ bytes: [UInt8]) { withConnection { $0.send(bytes) } }

    /// Closes the connection after the pending bytes, or when the server has not read for ten seconds; nothing more is received.
    package func finish() { withConnection { $0.closeAfterOutput() } }

    private func withConnection(_ body: @escaping @Sendable (UpstreamConnection) -> Void) {
        loop.execute { [loop, id] in
            guard let connection = loop.upstreamConnection(id) else { return }
            body(connection)
        }
    }
}

/// A request with its place in a pool.
struct UpstreamExchange {
    let id: UInt64
    let request: UpstreamRequest
    var receive: @Sendable (UpstreamEvent) -> Void
    /// When the wait for a connection ends.
    let deadline: MonotonicTime
    /// Whether it was already sent on a reused connection that was closed.
    var wasRepeated = false
}

extension ResponseHead {
    /// Whether the content is a stream of server-sent events.
    package var isEventStream: Bool {
        guard let type = lines.range(of: "content-type") else { return false }
        let prefix = "text/event-stream".utf8
        return lines.head[type].prefix(prefix.count).elementsEqual(prefix) { byte, expected in
            byte == expected || byte | 0x20 == expected
        }
    }
}
