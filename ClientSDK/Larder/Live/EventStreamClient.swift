public import LarderHTTP
public import LarderTime

/// Opens event streams (Server-Sent Events, WHATWG HTML §9.2) over a transport.
///
///     let events = try await client.open("https://example.org/v1/live/events", lastEventID: token)
///     for try await event in events { … }
///
/// It does not connect again by itself: the caller knows what to do about what was missed, and resumes with `lastEventID`.
/// Safe from any task.
public struct EventStreamClient: Sendable {
    /// How streams are read.
    public struct Configuration: Sendable, Hashable {
        /// How long nothing at all may come, no comment either, before the connection counts as dead; nil for any time.
        public var silenceMaximum: Duration? = .seconds(75)
        /// How long the head may take.
        public var openTimeout: Duration = .seconds(15)
        /// How large one event may be, in bytes.
        public var eventBytesMaximum = 1 << 20

        /// The defaults.
        public init() {}
    }

    private let transport: any Transport
    private let configuration: Configuration
    private let clock: any MonotonicClock & Sleeper

    /// - Parameters:
    ///   - transport: carries the stream; not one that caches.
    ///   - configuration: limits.
    ///   - clock: measures silence.
    public init(
        _ transport: any Transport,
        _ configuration: Configuration = Configuration(),
        clock: any MonotonicClock & Sleeper = SystemMonotonicClock()
    ) {
        self.transport = transport
        self.configuration = configuration
        self.clock = clock
    }

    /// Opens a stream.
    ///
    /// - Parameters:
    ///   - url: where it is.
    ///   - fields: what else to say; `Accept` and `Cache-Control` are set.
    ///   - lastEventID: the id of the last event that was seen, to go on from there; empty for none.
    /// - Throws: `.refused` for any other reply than 200 with `text/event-stream`, `.finished` for 204.
    public func open(
        _ url: String,
        fields: Fields = Fields(),
        lastEventID: String = ""
    ) async throws(EventStreamError) -> EventStream {
        var fields = fields
        fields.set(.accept, "text/event-stream")
        fields.set(.cacheControl, "no-store")
        if !lastEventID.isEmpty { fields.set(.lastEventID, lastEventID) }
        // Silence is measured here, byte for byte, and a stream has no end at which its size could be too large.
        let request = TransportRequest(
            url: url,
            fields: fields,
            timeout: .seconds(7 * 86_400),
            bodyLimit: .max
        )
        let transport = transport
        let opened = await until(clock.uptime + configuration.openTimeout, by: clock) {
            () -> Result<TransportStream, TransportError> in
            do throws(TransportError) { return .success(try await transport.open(request)) } catch {
                return .failure(error)
            }
        }
        guard let opened else {
            throw EventStreamError(.silent, "No reply came within \(configuration.openTimeout).")
        }
        let stream: TransportStream
        do { stream = try opened.get() } catch { throw Self.broken(error) }
        guard stream.status != .noContent else {
            throw EventStreamError(.finished, "The server wants no one to come again.", status: stream.status)
        }
        let type = stream.fields[.contentType]?.lowercased() ?? ""
        guard stream.status == .ok, type.split(separator: ";").first?.trimmed == "text/event-stream" else {
            throw await refusal(stream)
        }
        return EventStream(stream, configuration, clock, lastEventID: lastEventID)
    }

    private func refusal(_ stream: TransportStream) async -> EventStreamError {
        let body = await until(clock.uptime + configuration.openTimeout, by: clock) { () -> [UInt8] in
            var body: [UInt8] = []
            var pieces = stream.body.makeAsyncIterator()
            // The refusal counts, whatever becomes of its content.
            while body.count < 65_536, let piece = try? await pieces.next() { body += piece }
            return Array(body.prefix(65_536))
        }
        let what =
            stream.status == .ok
            ? "The reply is «\(stream.fields[.contentType] ?? "of no type")» and no event stream."
            : "The server answered with \(stream.status.code)."
        return EventStreamError(
            .refused,
            what,
            status: stream.status,
            fields: stream.fields,
            body: body ?? []
        )
    }

    static func broken(_ error: TransportError) -> EventStreamError {
        EventStreamError(
            error.code == .cancelled ? .cancelled : .disconnected,
            error.description,
            transport: error
        )
    }
}

extension Substring {
    /// Without the blanks around it.
    fileprivate var trimmed: Substring {
        var text = drop { $0 == " " || $0 == "\t" }
        while text.last == " " || text.last == "\t" { text.removeLast() }
        return text
    }
}
