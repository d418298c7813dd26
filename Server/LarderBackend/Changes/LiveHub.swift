import LarderSQLite
import Synchronization

/// A receiver of live events: a WebSocket, an event stream, or a long poll.
package protocol LiveSink: AnyObject, Sendable {
    /// The session that the channel was opened with; nil for an anonymous one.
    var session: Int64? { get }

    /// Receives an event. Called in commit order while the store is locked: it must only hand the bytes on.
    func send(_ event: LiveEvent)

    /// The session has ended; the channel must be closed.
    func sessionEnded()

    /// The server is about to stop: long polls are answered now.
    func serverStops()

    /// The world's state was replaced: the reader must reconnect and read the change feed.
    func stateReplaced()

    /// Sends or requests a heartbeat.
    func heartbeat()
}

extension LiveSink {
    /// The engine closes WebSockets and event streams itself.
    func serverStops() {}
}

/// The readers of a world's changes.
///
/// Readers with the same view (same person, filter and last token) share one encoded event. Safe from any thread; lock order: the store
/// first.
package final class LiveHub: Sendable {
    private struct Reader {
        let id: UInt64
        let scope: ReaderScope
        var token: ChangeToken
        let sink: any LiveSink
    }

    private struct State {
        /// In the order of their identifiers.
        var readers: [Reader] = []
        var lastID: UInt64 = 0
        var isStopping = false
    }

    /// Readers with the same view of one change: those with the same last token.
    private struct Group {
        let event: LiveEvent
        var sinks: [any LiveSink]
    }

    private let state = Mutex(State())

    /// Adds a reader that has received everything up to `token`. Call it while the store is locked, so that no commit falls
    /// between the token and the first event.
    func add(_ sink: any LiveSink, scope: ReaderScope, from token: ChangeToken) -> UInt64 {
        state.withLock { state in
            state.lastID += 1
            state.readers.append(Reader(id: state.lastID, scope: scope, token: token, sink: sink))
            return state.lastID
        }
    }

    func remove(_ id: UInt64) {
        // The sink is released after the lock, because its deinitialisation may call this hub.
        let removed = state.withLock { state -> Reader? in
            state.readers.firstIndex { $0.id == id }.map { state.readers.remove(at: $0) }
        }
        _ = consume removed
    }

    /// Ends every channel of a session.
    func end(session: Int64) {
        let sinks = state.withLock { state in
            state.readers.filter { $0.sink.session == session }.map(\.sink)
        }
        for sink in sinks { sink.sessionEnded() }
    }

    /// Ends every channel because the state was replaced.
    package func endAll() {
        let sinks = state.withLock { $0.readers.map(\.sink) }
        for sink in sinks { sink.stateReplaced() }
    }

    /// Gives further events tokens of another history. Called while the store is locked.
    func continueHistory(as instance: UInt64) {
        state.withLock { state in
            for index in state.readers.indices { state.readers[index].token.instance = instance }
        }
    }

    /// Answers all long polls now, including those that join later.
    package func stopWaiting() {
        let sinks = state.withLock { state in
            state.isStopping = true
            return state.readers.map(\.sink)
        }
        for sink in sinks { sink.serverStops() }
    }

    var isStopping: Bool { state.withLock { $0.isStopping } }

    /// Sends a heartbeat on every channel.
    func beat() {
        let sinks = state.withLock { $0.readers.map(\.sink) }
        for sink in sinks { sink.heartbeat() }
    }

    package var readerCount: Int { state.withLock { $0.readers.count } }

    /// Publishes the changes of a commit, in order. Called while the store is locked.
    func publish(_ changes: [ChangeRow], from store: Store) {
        guard !changes.isEmpty else { return }
        state.withLock { state in
            guard !state.readers.isEmpty else { return }
            for change in changes { Self.publish(change, to: &state.readers, from: store) }
        }
    }

    private static func publish(_ change: ChangeRow, to readers: inout [Reader], from store: Store) {
        var groups: [Group] = []
        var places: [ChangeToken: Int] = [:]
        var rendered: [Int64: [UInt8]] = [:]
        for index in readers.indices {
            let previous = readers[index].token
            guard previous.filter.includes(change.entity.kind), readers[index].scope.includes(change.audience) else {
                continue
            }
            readers[index].token = previous.advanced(to: change.position)
            if let place = places[previous] {
                groups[place].sinks.append(readers[index].sink)
            } else if let json = json(of: change, for: previous.viewer, from: store, &rendered) {
                let token = readers[index].token.text
                let event = LiveEvent(token: token, previous: previous.text, change: json)
                places[previous] = groups.count
                groups.append(Group(event: event, sinks: [readers[index].sink]))
            }
        }
        for group in groups {
            for sink in group.sinks { sink.send(group.event) }
        }
    }

    /// The change as a viewer sees it; nil if it cannot be read. The commit is not affected: the reader detects the gap by the
    /// next token and reads the feed.
    private static func json(
        of change: ChangeRow,
        for viewer: Int64,
        from store: Store,
        _ rendered: inout [Int64: [UInt8]]
    ) -> [UInt8]? {
        // Only posts differ between viewers.
        let viewer = change.entity.kind == .post ? viewer : 0
        if let known = rendered[viewer] { return known }
        var bytes: [UInt8] = []
        guard (try? ChangeJSON.append(change, viewer: viewer, from: store, to: &bytes)) != nil else { return nil }
        rendered[viewer] = bytes
        return bytes
    }
}
