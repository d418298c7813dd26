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

    /// The server is about to stop: what was only waited for is answered now.
    func serverStops()

    /// Another state has taken the place of the one that the channel tells of: its reader is to come again and read on.
    func stateReplaced()

    /// Asks the peer for a sign of life, or gives one.
    func heartbeat()

    /// The channel as one of many that are told the same at once; nil where it must be told by itself.
    var listener: LiveListener? { get }
}

extension LiveSink {
    var listener: LiveListener? { nil }

    /// Channels are ended by the engine, which has the words for it.
    func serverStops() {}
}

/// Everyone who listens to a world's changes.
///
/// Readers who see alike (the same person, filter and last token) share one encoded event, one entry into the journal's lock
/// and one job for each loop, so that a thousand sockets cost one encoding and a thousand system calls. Safe from any thread;
/// lock order is the store first.
final class LiveHub: Sendable {
    private struct Reader {
        let id: UInt64
        let scope: ReaderScope
        var token: ChangeToken
        let sink: any LiveSink
    }

    private struct State {
        /// In no order: the last takes the place of one who leaves.
        var readers: [Reader] = []
        var places: [UInt64: Int] = [:]
        var lastID: UInt64 = 0
        var isStopping = false
    }

    /// Everyone who is told the same of one change.
    private struct Group {
        /// The token of what they were told before: who has the same one sees alike.
        let previous: ChangeToken
        let token: ChangeToken
        let event: LiveEvent
        var sinks: [any LiveSink] = []
    }

    private let state = Mutex(State())

    /// Adds a reader who has been told everything up to `token`. To be called while the store is held, so that no commit
    /// falls between the token and the first event.
    func add(_ sink: any LiveSink, scope: ReaderScope, from token: ChangeToken) -> UInt64 {
        state.withLock { state in
            state.lastID += 1
            state.places[state.lastID] = state.readers.count
            state.readers.append(Reader(id: state.lastID, scope: scope, token: token, sink: sink))
            return state.lastID
        }
    }

    func remove(_ id: UInt64) {
        // The sink is released after the lock, as its end may lead back here.
        let removed = state.withLock { state -> Reader? in
            guard let place = state.places.removeValue(forKey: id) else { return nil }
            state.readers.swapAt(place, state.readers.count - 1)
            if place < state.readers.count - 1 { state.places[state.readers[place].id] = place }
            return state.readers.removeLast()
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

    /// Ends every channel: the state that they told of is no more.
    func endAll() {
        let sinks = state.withLock { $0.readers.map(\.sink) }
        for sink in sinks { sink.stateReplaced() }
    }

    /// Has further events bear tokens of another history. Called while the store is held.
    func goOn(as instance: UInt64) {
        state.withLock { state in
            for index in state.readers.indices { state.readers[index].token.instance = instance }
        }
    }

    /// Has nobody wait any longer, those who come later included.
    func stopWaiting() {
        let sinks = state.withLock { state in
            state.isStopping = true
            return state.readers.map(\.sink)
        }
        for sink in sinks { sink.serverStops() }
    }

    var isStopping: Bool { state.withLock { $0.isStopping } }

    /// Has every channel give a sign of life.
    func beat() {
        let sinks = state.withLock { $0.readers.map(\.sink) }
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

    private static func publish(_ change: ChangeRow, to readers: inout [Reader], from store: Store) {
        var groups: [Group] = []
        var places: [ChangeToken: Int] = [:]
        var rendered: [Int64: [UInt8]] = [:]
        // Neighbours mostly see alike.
        var current = 0
        for index in readers.indices {
            let previous = readers[index].token
            guard previous.filter.includes(change.entity.kind), readers[index].scope.includes(change.audience) else {
                continue
            }
            if current >= groups.count || groups[current].previous != previous {
                if let known = places[previous] {
                    current = known
                } else {
                    let token = previous.advanced(to: change.position)
                    readers[index].token = token
                    guard let json = json(of: change, for: previous.viewer, from: store, &rendered) else { continue }
                    let event = LiveEvent(token: token.text, previous: previous.text, change: json)
                    current = groups.count
                    places[previous] = current
                    groups.append(Group(previous: previous, token: token, event: event))
                }
            }
            readers[index].token = groups[current].token
            groups[current].sinks.append(readers[index].sink)
        }
        for group in groups { LiveListener.tell(group.event, to: group.sinks) }
    }

    /// The change as somebody sees it; nil where it cannot be read. The commit stands: a reader who is not told sees the gap by
    /// the next token and reads the feed.
    private static func json(
        of change: ChangeRow,
        for viewer: Int64,
        from store: Store,
        _ rendered: inout [Int64: [UInt8]]
    ) -> [UInt8]? {
        // Only posts look different to different readers.
        let viewer = change.entity.kind == .post ? viewer : 0
        if let known = rendered[viewer] { return known }
        var bytes: [UInt8] = []
        guard (try? ChangeJSON.append(change, viewer: viewer, from: store, to: &bytes)) != nil else { return nil }
        rendered[viewer] = bytes
        return bytes
    }
}
