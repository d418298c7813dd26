import LarderSQLite
import Synchronization

/// Where live events go: a WebSocket, an event stream, or a request that waits for one change.
protocol LiveSink: AnyObject, Sendable {
    /// The session that the channel was opened with, if any.
    var session: Int64? { get }

    /// Takes an event. Called in the order of commits, while the store is held: it must only hand the bytes on.
    func send(_ event: LiveEvent)

    /// The session has ended, and with it the right to listen.
    func sessionEnded()

    /// Asks the peer for a sign of life, or gives one.
    func heartbeat()
}

/// Everyone who listens to a world's changes.
///
/// Readers who see alike (the same person, filter and last token) share one encoded event, so that a thousand sockets cost
/// one encoding. Safe from any thread; lock order is the store first.
final class LiveHub: Sendable {
    private struct Reader {
        let scope: ReaderScope
        var token: ChangeToken
        let sink: any LiveSink
    }

    private struct Group: Hashable {
        let viewer: Int64
        let filter: ChangeFilter
        let position: Int64
    }

    private struct State {
        var readers: [UInt64: Reader] = [:]
        var lastID: UInt64 = 0
    }

    private let state = Mutex(State())

    /// Adds a reader who has been told everything up to `token`. To be called while the store is held, so that no commit
    /// falls between the token and the first event.
    func add(_ sink: any LiveSink, scope: ReaderScope, from token: ChangeToken) -> UInt64 {
        state.withLock { state in
            state.lastID += 1
            state.readers[state.lastID] = Reader(scope: scope, token: token, sink: sink)
            return state.lastID
        }
    }

    func remove(_ id: UInt64) {
        // The sink is released after the lock, as its end may lead back here.
        let removed = state.withLock { $0.readers.removeValue(forKey: id) }
        _ = consume removed
    }

    /// Ends every channel of a session.
    func end(session: Int64) {
        let sinks = state.withLock { state in
            state.readers.values.filter { $0.sink.session == session }.map(\.sink)
        }
        for sink in sinks { sink.sessionEnded() }
    }

    /// Ends every channel: the state that they told of is no more.
    func endAll() {
        let sinks = state.withLock { $0.readers.values.map(\.sink) }
        for sink in sinks { sink.sessionEnded() }
    }

    /// Has every channel give a sign of life.
    func beat() {
        let sinks = state.withLock { $0.readers.values.map(\.sink) }
        for sink in sinks { sink.heartbeat() }
    }

    var readerCount: Int { state.withLock { $0.readers.count } }

    /// Announces what a commit changed, in order. Called while the store is held.
    func publish(_ changes: [ChangeRow], from store: Store) {
        guard !changes.isEmpty else { return }
        state.withLock { state in
            guard !state.readers.isEmpty else { return }
            for change in changes { Self.publish(change, to: &state.readers, from: store) }
        }
    }

    private static func publish(_ change: ChangeRow, to readers: inout [UInt64: Reader], from store: Store) {
        var events: [Group: LiveEvent] = [:]
        var rendered: [Int64: [UInt8]] = [:]
        for (id, reader) in readers {
            guard reader.token.filter.includes(change.entity.kind), reader.scope.includes(change.audience) else {
                continue
            }
            let group = Group(
                viewer: reader.scope.viewer,
                filter: reader.token.filter,
                position: reader.token.position
            )
            let token = reader.token.advanced(to: change.position)
            readers[id]?.token = token
            if let event = events[group] {
                reader.sink.send(event)
                continue
            }
            // Only posts look different to different readers.
            let viewer = change.entity.kind == .post ? reader.scope.viewer : 0
            let json: [UInt8]
            if let known = rendered[viewer] {
                json = known
            } else {
                var bytes: [UInt8] = []
                do {
                    try ChangeJSON.append(change, viewer: viewer, from: store, to: &bytes)
                } catch {
                    // The commit stands. A reader who is not told sees the gap by the next token and reads the feed.
                    continue
                }
                rendered[viewer] = bytes
                json = bytes
            }
            let event = LiveEvent(token: token.text, previous: reader.token.text, change: json)
            events[group] = event
            reader.sink.send(event)
        }
    }
}
