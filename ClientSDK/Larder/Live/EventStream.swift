import LarderTime
import Synchronization

/// The events of one connection, in order. Read by one task.
///
/// It ends where the server ends it, and throws where it breaks or falls silent. When the value and its copies are gone, the
/// connection is closed.
public struct EventStream: AsyncSequence, Sendable {
    /// Gives the events.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let reader: EventStreamReader

        /// The next event; nil where the server has ended the stream.
        public mutating func next() async throws(EventStreamError) -> ServerSentEvent? { try await reader.next() }

        /// The next event; nil where the server has ended the stream.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(EventStreamError) -> ServerSentEvent? { try await reader.next() }
    }

    private let reader: EventStreamReader

    init(
        _ stream: TransportStream,
        _ configuration: EventStreamClient.Configuration,
        _ clock: any MonotonicClock & Sleeper,
        lastEventID: String
    ) {
        reader = EventStreamReader(stream, configuration, clock, lastEventID: lastEventID)
    }

    /// What to give as `lastEventID` to go on behind what has been read.
    public var lastEventID: String { reader.lastEventID }

    /// How long the server wants clients to wait before they come again; nil where it has not said.
    public var retry: Duration? { reader.retry }

    /// Begins to read, or goes on.
    public func makeAsyncIterator() -> Iterator { Iterator(reader: reader) }
}

/// The state of a stream that is being read.
final class EventStreamReader: Sendable {
    private struct State {
        var parser: EventStreamParser
        var events: [ServerSentEvent] = []
        var lastEventID: String
        var end: Result<Void, EventStreamError>?
    }

    private let body: Mutex<TransportBody?>
    private let silenceMaximum: Duration?
    private let clock: any MonotonicClock & Sleeper
    private let state: Mutex<State>

    init(
        _ stream: TransportStream,
        _ configuration: EventStreamClient.Configuration,
        _ clock: any MonotonicClock & Sleeper,
        lastEventID: String
    ) {
        body = Mutex(stream.body)
        silenceMaximum = configuration.silenceMaximum
        self.clock = clock
        let parser = EventStreamParser(
            lastEventID: lastEventID,
            eventBytesMaximum: configuration.eventBytesMaximum
        )
        state = Mutex(State(parser: parser, lastEventID: lastEventID))
    }

    /// The id of the last event that was handed out, or of one that carried no data before it; never of one not yet read.
    var lastEventID: String { state.withLock { $0.events.isEmpty ? $0.parser.lastEventID : $0.lastEventID } }

    var retry: Duration? { state.withLock { $0.parser.retry } }

    func next() async throws(EventStreamError) -> ServerSentEvent? {
        while true {
            let (event, end): (ServerSentEvent?, Result<Void, EventStreamError>?) = state.withLock { state in
                guard state.events.isEmpty else {
                    let event = state.events.removeFirst()
                    state.lastEventID = event.id
                    return (event, nil)
                }
                return (nil, state.end)
            }
            if let event { return event }
            if let end {
                try end.get()
                return nil
            }
            await read()
        }
    }

    private func read() async {
        guard let body = body.withLock({ $0 }) else { return }
        let piece: Result<[UInt8]?, TransportError>?
        if let silenceMaximum {
            piece = await until(clock.uptime + silenceMaximum, by: clock) { await Self.piece(of: body) }
        } else {
            piece = await Self.piece(of: body)
        }
        switch piece {
        case nil: end(.failure(EventStreamError(.silent, "Nothing came for \(silenceMaximum ?? .zero).")))
        case .failure(let error)?: end(.failure(EventStreamClient.broken(error)))
        case .success(nil)?: end(.success(()))
        case .success(let bytes?)?:
            let failure: EventStreamError? = state.withLock { state in
                do throws(EventStreamParser.TooLarge) {
                    try state.parser.receive(bytes, &state.events)
                    return nil
                } catch { return EventStreamError(.tooLarge, "An event is larger than allowed.") }
            }
            if let failure { end(.failure(failure)) }
        }
    }

    private static func piece(of body: TransportBody) async -> Result<[UInt8]?, TransportError> {
        var iterator = body.makeAsyncIterator()
        do throws(TransportError) { return .success(try await iterator.next()) } catch { return .failure(error) }
    }

    private func end(_ end: Result<Void, EventStreamError>) {
        state.withLock { if $0.end == nil { $0.end = end } }
        // The connection goes with its body.
        let last = body.withLock { body in
            defer { body = nil }
            return body
        }
        _ = consume last
    }
}
