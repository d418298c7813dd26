import LarderEvents
import LarderTime
import Synchronization

/// The events of one connection, in order. One task may read them.
///
/// The connection is closed when this value is released.
package final class EventStream: Sendable {
    private struct State {
        var parser: EventStreamParser
        var events: [EventStream.Event] = []
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
        state = Mutex(State(parser: EventStreamParser(lastEventID: lastEventID)))
    }

    /// The server's reconnection time; nil if it has sent none.
    package var retry: Duration? { state.withLock { $0.parser.retry } }

    /// Returns the next event; nil after the server has ended the stream. Its `id` resumes after it.
    ///
    /// - Throws: if the connection breaks or is silent, at each later call too.
    package func receive() async throws(EventStreamError) -> EventStream.Event? {
        while true {
            let (event, end): (EventStream.Event?, Result<Void, EventStreamError>?) = state.withLock { state in
                state.events.isEmpty ? (nil, state.end) : (state.events.removeFirst(), nil)
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
