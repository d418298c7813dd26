package import LarderHTTP
import LarderTime

/// A request to another server, as bytes.
package struct UpstreamRequest: Sendable {
    /// Request line and field lines with the empty line, and the body.
    package let bytes: [UInt8]
    package let method: Method
    /// Whether the request asks for a WebSocket.
    package let isUpgrade: Bool

    package init(method: Method, bytes: [UInt8], isUpgrade: Bool = false) {
        self.method = method
        self.bytes = bytes
        self.isUpgrade = isUpgrade
    }

}

/// What arrives for a request to another server.
package enum UpstreamEvent: Sendable {
    /// The head of the final response; 101 only for an accepted upgrade, after which the exchange is the end of a tunnel (`TunnelEnd`).
    case head(ResponseHead)
    case content([UInt8])
    /// The response is complete.
    case end
    case failed(UpstreamFailure)
}

/// Why a request to another server has no complete response.
package enum UpstreamFailure: Error, Sendable, Hashable {
    case unreachable(String)
    /// The certificate of the server was rejected. Nothing of the request was sent.
    case untrusted(String)
    case timedOut(String)
    /// The response is not valid HTTP/1, or ended early.
    case invalid(String)
    /// Too many requests wait for a connection.
    case tooMany(Int)

    /// - Parameter server: its host and port, or the request to it.
    package func sentence(about server: String) -> String {
        switch self {
        case .unreachable(let why): "\(server) cannot be reached: \(why)"
        case .untrusted(let why): "\(server) cannot be trusted: \(why)"
        case .timedOut(let why): "\(server): \(why)"
        case .invalid(let why): "The reply of \(server) is not complete and valid HTTP: \(why)"
        case .tooMany(let count): "\(count) requests already wait for a connection to \(server)."
        }
    }
}

/// Receives what arrives for a request to another server. Called on the loop that sends the request.
package protocol UpstreamReceiver: AnyObject {
    func received(_ event: UpstreamEvent)
}

/// A request to another server, from its place in the queue of a pool to the end of its response.
///
/// `cancel` is safe from any thread, and has no effect after the exchange's end.
///
/// `@unchecked Sendable`: the stored properties below the line "Confined" are used on the thread of `loop` only, which other threads
/// reach through jobs.
package final class UpstreamExchange: @unchecked Sendable {
    package let loop: EventLoop
    let pool: UpstreamPool
    let request: UpstreamRequest
    /// When the wait for a connection ends.
    let deadline: MonotonicTime

    // Confined.
    /// Nil after the end of the exchange: the receiver retains it.
    private var receiver: (any UpstreamReceiver)?
    /// Set while the exchange is in flight.
    var connection: UpstreamConnection?
    /// Whether it was already sent on a reused connection that was closed.
    var wasRepeated = false

    init(_ request: UpstreamRequest, in pool: UpstreamPool, for receiver: any UpstreamReceiver) {
        loop = pool.loop
        deadline = loop.now + .seconds(UpstreamPool.waitTimeoutSeconds)
        self.pool = pool
        self.request = request
        self.receiver = receiver
    }

    /// Closes the connection, or gives up the place in the queue for one; nothing more is received.
    package func cancel() {
        loop.execute { [self] in pool.cancel(self) }
    }

    // MARK: On the loop

    /// Passes a part of the response to the receiver.
    func receive(_ event: UpstreamEvent) { receiver?.received(event) }

    /// Passes the end of the response or a failure to the receiver, and nothing after it.
    func end(_ event: UpstreamEvent) {
        let receiver = receiver
        leave()
        receiver?.received(event)
    }

    /// Ends the exchange: nothing more is received.
    func leave() {
        receiver = nil
        connection = nil
    }
}

extension ResponseHead {
    /// Whether the content is a stream of server-sent events.
    package var isEventStream: Bool {
        lines[.contentType]?.lowercased().hasPrefix("text/event-stream") ?? false
    }
}
