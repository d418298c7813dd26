import LarderHTTP
import LarderHTTPWire
import Synchronization

/// One request over a socket. It waits for a connection and may be sent again over a second one.
final class SocketExchange: ReplyExchange {
    private struct State {
        var connection: SocketConnection?
        var ticket: UInt64?
        /// Whether it requires a new connection.
        var needsFresh: Bool
        var isOver = false
    }

    let endpoint: Endpoint
    let bytes: [UInt8]
    let isHead: Bool
    /// Whether it may be sent again if a reused connection is dead (RFC 9110 §9.2.2).
    let isRepeatable: Bool
    let inbox: ReplyInbox
    private let pool: SocketPool
    private let state: Mutex<State>

    init(
        _ request: TransportRequest,
        _ url: HTTPURL,
        _ bytes: [UInt8],
        bufferMaximum: Int,
        pool: SocketPool
    ) {
        endpoint = Endpoint(url)
        self.bytes = bytes
        isHead = request.method == .head
        isRepeatable = request.method.isIdempotent
        inbox = ReplyInbox(bodyLimit: request.bodyLimit, bufferMaximum: bufferMaximum, canPause: true)
        self.pool = pool
        state = Mutex(State(needsFresh: !request.method.isIdempotent))
    }

    var needsFresh: Bool { state.withLock { $0.needsFresh } }

    /// Whether it is complete, failed or cancelled.
    var isOver: Bool { state.withLock { $0.isOver } }

    /// Its position in the pool's queue; nil if it is not queued.
    var ticket: UInt64? {
        get { state.withLock { $0.ticket } }
        set { state.withLock { $0.ticket = newValue } }
    }

    /// Assigns a connection; false if the exchange is over.
    func board(_ connection: SocketConnection) -> Bool {
        state.withLock { state in
            guard !state.isOver else { return false }
            state.connection = connection
            return true
        }
    }

    /// Removes a dead connection. The next one must be new.
    func detachForResend() {
        state.withLock { state in
            state.connection = nil
            state.needsFresh = true
        }
    }

    /// Completes the response. Called after the connection has released the exchange.
    func completed(_ rest: [ResponseReader.Event]) {
        state.withLock { state in
            state.connection = nil
            state.isOver = true
        }
        var head: (Status, Fields)?
        var pieces: [[UInt8]] = []
        for event in rest {
            switch event {
            case .head(let status, let fields): head = (status, fields)
            case .content(let bytes): pieces.append(bytes)
            case .end: break
            }
        }
        inbox.completed(head, pieces)
    }

    /// Ends the exchange. Called by the connection when it releases the exchange.
    func end(_ end: Result<Void, TransportError>) {
        state.withLock { state in
            state.connection = nil
            state.isOver = true
        }
        inbox.finish(end)
    }

    func resumeReading() { state.withLock { $0.connection }?.resumeReading(self) }

    func stop() {
        let connection = state.withLock { state in
            state.isOver = true
            defer { state.connection = nil }
            return state.connection
        }
        connection?.giveUp(self)
        pool.forget(self)
    }
}
