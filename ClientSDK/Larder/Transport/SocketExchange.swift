import LarderHTTP
import Synchronization

/// One request on its way over a socket: it waits for a connection, goes over it, and sometimes over another one.
final class SocketExchange: ReplyExchange {
    private struct State {
        var connection: SocketConnection?
        var ticket: UInt64?
        /// Whether only a connection will do that has served nobody before.
        var needsFresh: Bool
        var isOver = false
    }

    let target: SocketTarget
    let bytes: [UInt8]
    let isHead: Bool
    /// Whether it may be sent again where a connection that was kept turns out to be dead (RFC 9110 §9.2.2).
    let isRepeatable: Bool
    let inbox: ReplyInbox
    private let pool: SocketPool
    private let state: Mutex<State>

    init(
        _ request: TransportRequest,
        _ target: SocketTarget,
        bufferMaximum: Int,
        pool: SocketPool
    ) throws(TransportError) {
        self.target = target
        bytes = try SocketRequest.bytes(request, target)
        isHead = request.method == .head
        isRepeatable = request.method.isIdempotent
        inbox = ReplyInbox(bodyLimit: request.bodyLimit, bufferMaximum: bufferMaximum, canPause: true)
        self.pool = pool
        state = Mutex(State(needsFresh: !request.method.isIdempotent))
    }

    var needsFresh: Bool { state.withLock { $0.needsFresh } }

    /// Whether nobody waits for it any more, or all is said.
    var isOver: Bool { state.withLock { $0.isOver } }

    /// The place in the pool's queue, while it is there.
    var ticket: UInt64? {
        get { state.withLock { $0.ticket } }
        set { state.withLock { $0.ticket = newValue } }
    }

    /// Goes over a connection from now on; false where it is over.
    func board(_ connection: SocketConnection) -> Bool {
        state.withLock { state in
            guard !state.isOver else { return false }
            state.connection = connection
            return true
        }
    }

    /// The connection was dead before it could say a word: another one, and a new one.
    func leaveForAnother() {
        state.withLock { state in
            state.connection = nil
            state.needsFresh = true
        }
    }

    /// The reply is whole. Called when the connection has forgotten it.
    func completed(_ rest: [ReplyReader.Event]) {
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

    /// All is said. Called by the connection, which forgets it.
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
