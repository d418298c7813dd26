import LarderEvents
package import LarderHTTP
package import LarderTime

/// Opens event streams (Server-Sent Events, WHATWG HTML §9.2) over a transport: `APIClient.openChannel`.
///
/// The client does not reconnect: the caller decides what to do about missed events and resumes with the ID of the last event.
/// Safe from any task.
package struct EventStreamClient: Sendable {
    /// The timeout for the response's head.
    private static let openTimeout: Duration = .seconds(15)

    private let transport: any Transport
    private let clock: any MonotonicClock

    /// - Parameters:
    ///   - transport: sends the request. It must not cache.
    ///   - clock: measures silence.
    package init(_ transport: any Transport, clock: any MonotonicClock = SystemMonotonicClock()) {
        self.transport = transport
        self.clock = clock
    }

    /// Opens a stream.
    ///
    /// - Parameters:
    ///   - url: the absolute URL of the stream.
    ///   - fields: additional fields; `Accept` and `Cache-Control` are set by the client.
    ///   - lastEventID: the ID of the last received event; empty for none.
    /// - Throws: `.finished` for 204, and `.rejected` for any other response than 200 with `text/event-stream`.
    package func open(
        _ url: String,
        fields: Fields = Fields(),
        lastEventID: String = ""
    ) async throws(EventStreamError) -> EventStream {
        var fields = fields
        fields.set(.accept, "text/event-stream")
        fields.set(.cacheControl, "no-store")
        if !lastEventID.isEmpty { fields.set(.lastEventID, lastEventID) }
        // `EventStream` measures silence, and a stream has no total size.
        var held = TransportRequest(
            url: url,
            fields: fields,
            timeout: .seconds(7 * 86_400),
            bodyLimit: .max
        )
        held.isLongPoll = true
        let (request, transport) = (held, transport)
        let opened = await until(clock.uptime + Self.openTimeout, by: clock) {
            () -> Result<TransportStream, TransportError> in
            do throws(TransportError) { return .success(try await transport.open(request)) } catch {
                return .failure(error)
            }
        }
        guard let opened else {
            throw EventStreamError(.silent, "No reply arrived within \(Self.openTimeout).")
        }
        let stream: TransportStream
        do { stream = try opened.get() } catch { throw Self.broken(error) }
        guard stream.status != .noContent else {
            throw EventStreamError(
                .finished,
                "The server ended the stream for good (204). Do not reconnect.",
                status: stream.status
            )
        }
        let type = stream.fields[.contentType]?.split(separator: ";").first.map(FieldList.trimmed)
        guard stream.status == .ok, type?.lowercased() == "text/event-stream" else {
            let what =
                stream.status == .ok
                ? "The response is '\(stream.fields[.contentType] ?? "without a type")', not an event stream."
                : "The server answered with \(stream.status.code)."
            throw EventStreamError(.rejected, what, status: stream.status)
        }
        return EventStream(stream, clock, lastEventID: lastEventID)
    }

    static func broken(_ error: TransportError) -> EventStreamError {
        EventStreamError(
            error.code == .cancelled ? .cancelled : .disconnected,
            error.description,
            transport: error
        )
    }
}
