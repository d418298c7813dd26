import LarderSQLite
import Synchronization

/// What a reader of live events is told.
package enum LiveSignal: Sendable {
    case event(LiveEvent)
    /// The session has ended: the channel must be closed.
    case sessionEnded
    /// The world ends, or its server stops: long polls are answered, and channels are closed.
    case worldEnds
    /// The world's state was replaced: the reader must reconnect and read the change feed.
    case stateReplaced
    case heartbeat
}

/// A reader of live events: a WebSocket, an event stream, or a long poll.
package protocol LiveSink: AnyObject, Sendable {
    /// The session that the channel was opened with; nil for an anonymous one.
    var session: Int64? { get }

    /// Events come in commit order while the store is locked: the reader must only hand the bytes on.
    func receive(_ signal: LiveSignal)
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
        var hasEnded = false
    }

    private let state = Mutex(State())

    /// Adds a reader that has received everything up to `token`. Call it while the store is locked, so that no commit falls
    /// between the token and the first event. A reader that joins after `worldEnds` is told so at once.
    func add(_ sink: any LiveSink, scope: ReaderScope, from token: ChangeToken) -> UInt64 {
        let (id, hasEnded) = state.withLock { state in
            state.lastID += 1
            state.readers.append(Reader(id: state.lastID, scope: scope, token: token, sink: sink))
            return (state.lastID, state.hasEnded)
        }
        if hasEnded { sink.receive(.worldEnds) }
        return id
    }

    func remove(_ id: UInt64) {
        // The sink is released after the lock, because its deinitialisation may call this hub.
        let removed = state.withLock { state -> Reader? in
            state.readers.firstIndex { $0.id == id }.map { state.readers.remove(at: $0) }
        }
        _ = consume removed
    }

    /// Tells all readers, or those of a session.
    package func tell(_ signal: LiveSignal, session: Int64? = nil) {
        let sinks = state.withLock { state in
            if case .worldEnds = signal { state.hasEnded = true }
            return state.readers.map(\.sink).filter { session == nil || $0.session == session }
        }
        for sink in sinks { sink.receive(signal) }
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
        var events: [ChangeToken: LiveEvent] = [:]
        for index in readers.indices {
            let previous = readers[index].token
            guard previous.filter.includes(change.entity.kind),
                readers[index].scope.includes(change.entity, in: change.list)
            else { continue }
            let token = previous.advanced(to: change.position)
            readers[index].token = token
            if events[previous] == nil {
                let json: [UInt8]
                do { json = try ChangeJSON.encode(change, viewer: previous.viewer, from: store) } catch {
                    // The reader detects the gap by the next token and reads the feed.
                    continue
                }
                events[previous] = LiveEvent(token: token.text, previous: previous.text, change: json)
            }
            if let event = events[previous] { readers[index].sink.receive(.event(event)) }
        }
    }
}
