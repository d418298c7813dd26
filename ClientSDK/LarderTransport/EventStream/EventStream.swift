import LarderEvents
import LarderTime
import Synchronization

/// The events of one connection, in order. One task may read them.
///
/// The sequence ends when the server ends it and throws if the connection breaks or is silent. The connection is
/// closed when this value is released.
public final class EventStream: AsyncSequence, Sendable {
    private struct Iterator: AsyncIteratorProtocol {
        let stream: EventStream

        mutating func next() async throws(EventStreamError) -> EventStream.Event? {
            try await stream.receive()
        }

        mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(EventStreamError) -> EventStream.Event? { try await stream.receive() }
    }

    private struct State {
        var parser: EventStreamParser
        var events: [EventStream.Event] = []
        var lastEventID: String
        var end: Result<Void, EventStreamError>?
    }

    /// How long the server may send nothing, not even a comment.
    private static let silenceMaximum: Duration = .seconds(75)

    private let body: Mutex<TransportStream.Body?>
    private let clock: any MonotonicClock
    private let state: Mutex<State>

    init(_ stream: TransportStream, _ clock: any MonotonicClock, lastEventID: String) {
        body = Mutex(stream.body)
        self.clock = clock
        state = Mutex(State(parser: EventStreamParser(lastEventID: lastEventID), lastEventID: lastEventID))
    }

    /// The `lastEventID` that resumes after the last event that was read.
    public var lastEventID: String { state.withLock { $0.events.isEmpty ? $0.parser.lastEventID : $0.lastEventID } }

    /// The server's reconnection time; nil if it has sent none.
    public var retry: Duration? { state.withLock { $0.parser.retry } }

    /// Creates an iterator, which continues where others stopped.
    public func makeAsyncIterator() -> some AsyncIteratorProtocol<EventStream.Event, EventStreamError> {
        Iterator(stream: self)
    }

    /// Returns the next event; nil after the server has ended the stream.
    public func receive() async throws(EventStreamError) -> EventStream.Event? {
        while true {
            let (event, end): (EventStream.Event?, Result<Void, EventStreamError>?) = state.withLock { state in
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
        let piece = await until(clock.uptime + Self.silenceMaximum, by: clock) { await Self.piece(of: body) }
        switch piece {
        case nil: end(.failure(EventStreamError(.silent, "No data was received for \(Self.silenceMaximum).")))
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

    private static func piece(of body: TransportStream.Body) async -> Result<[UInt8]?, TransportError> {
        do throws(TransportError) { return .success(try await body.next()) } catch { return .failure(error) }
    }

    private func end(_ end: Result<Void, EventStreamError>) {
        state.withLock { if $0.end == nil { $0.end = end } }
        // Releasing the body closes the connection.
        let last = body.withLock { body in
            defer { body = nil }
            return body
        }
        _ = consume last
    }
}
