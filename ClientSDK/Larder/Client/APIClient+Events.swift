import LarderCoding
import LarderEvents
public import LarderResources
import LarderTransport
import Synchronization

extension APIClient {
    /// A message of a live channel, or the payload of a push notification.
    public struct Event: Sendable, Hashable {
        /// The type of a server-sent event; `message` for WebSocket messages; `push` for push notifications.
        public var name: String
        /// The content: the data of the event, the text of the message, the payload as JSON.
        public var data: String
        /// The ID of the event; empty for none.
        public var id: String

        public init(name: String, data: String, id: String = "") {
            self.name = name
            self.data = data
            self.id = id
        }

        /// A member of the content, if that is a JSON object: a string, or a number or boolean as text. Cost: it decodes the content.
        public subscript(member: String) -> String? {
            let content: JSONValue
            // Content of another form has no members.
            do { content = try JSONParser.parse(Array(data.utf8)) } catch { return nil }
            return switch content[member] {
            case .string(let text): text
            case .integer(let number): "\(number)"
            case .number(let number): "\(number)"
            case .bool(let value): "\(value)"
            default: nil
            }
        }
    }

    /// How a backend without change tokens says what has changed, by a live channel or by push notifications.
    ///
    /// ```swift
    /// var configuration = APIClient.Configuration()
    /// configuration.events = APIClient.Events(
    ///     .eventStream("/events"),
    ///     afterGap: { $0.invalidate(all: Article.self) },           // events may have been missed
    ///     apply: { event, update in
    ///         if let id = event["article"] { update.invalidate(Article.self, id) }
    ///     }
    /// )
    /// ```
    public struct Events: Sendable {
        /// A live channel of the backend. A path of the server, or an absolute URL.
        public enum Channel: Sendable, Hashable {
            /// Server-sent events.
            case eventStream(String)
            case webSocket(String, subprotocols: [String] = [])

            var kind: LiveSync.Kind {
                switch self {
                case .eventStream: .eventStream
                case .webSocket: .webSocket
                }
            }
        }

        /// The channels, the best first, at most one of each kind. Empty: push notifications only.
        public var channels: [Channel]
        /// Whether the channel is open only while a user is signed in. Otherwise it is open as long as the client.
        public var needsSession = false
        /// The member of a push notification that identifies it; nil: none. A notification whose ID has been received before, by this
        /// process and by any way, is ignored.
        public var pushID: String?
        /// Marks as stale what the events cover, when some may have been missed.
        public var afterGap: @Sendable (inout CacheUpdate) -> Void
        /// Maps an event to a change: an invalidation, a value, or nothing. If it throws, the event counts as missed.
        public var apply: @Sendable (Event, inout CacheUpdate) throws -> Void

        public init(
            _ channels: Channel...,
            afterGap: @escaping @Sendable (inout CacheUpdate) -> Void,
            apply: @escaping @Sendable (Event, inout CacheUpdate) throws -> Void
        ) {
            self.channels = channels
            self.afterGap = afterGap
            self.apply = apply
        }
    }
}

/// The IDs of received events.
final class ReceivedEvents: Sendable {
    private static let countMaximum = 256
    private let ids = Mutex<[String]>([])

    /// Remembers an ID. Returns false if it is known. An empty ID is always new.
    func insert(_ id: String) -> Bool {
        guard !id.isEmpty else { return true }
        return ids.withLock { ids in
            guard !ids.contains(id) else { return false }
            ids.append(id)
            if ids.count > Self.countMaximum { ids.removeFirst() }
            return true
        }
    }

    /// Forgets an ID whose event could not be applied.
    func remove(_ id: String) { ids.withLock { $0.removeAll { $0 == id } } }
}

extension LiveSync.Source {
    /// The channels of a backend without change tokens.
    static func events(
        _ events: APIClient.Events,
        _ opener: LiveChannelOpener,
        _ received: ReceivedEvents
    ) -> LiveSync.Source {
        LiveSync.Source(events.channels.map(\.kind)) { kind, _ throws(LarderError) in
            switch events.channels.first(where: { $0.kind == kind }) {
            case .eventStream(let path):
                EventStreamChannel(try await opener.eventStream(path, lastEventID: ""), events, received)
            case .webSocket(let path, let subprotocols):
                WebSocketChannel(try await opener.webSocket(path, subprotocols: subprotocols), events, received)
            case nil: throw LarderError(.invalidArgument, "There is no channel of the kind \(kind.rawValue).")
            }
        }
    }
}

extension LiveSync.Message {
    fileprivate init(_ event: APIClient.Event, _ events: APIClient.Events, _ received: ReceivedEvents) {
        // Events without an ID of their own repeat the last one, so a known ID is no reason to ignore an event.
        _ = received.insert(event.id)
        self = .update { update in try events.apply(event, &update) }
    }
}

private struct EventStreamChannel: LiveSync.Channel {
    let stream: EventStream
    let events: APIClient.Events
    let received: ReceivedEvents

    init(_ stream: EventStream, _ events: APIClient.Events, _ received: ReceivedEvents) {
        self.stream = stream
        self.events = events
        self.received = received
    }

    func receive() async throws(LarderError) -> LiveSync.Message? {
        let event: EventStream.Event?
        do throws(EventStreamError) { event = try await stream.receive() } catch {
            let code: ErrorCode<LarderError> = error.code == .cancelled ? .cancelled : .offline
            throw LarderError(code, "\(error)", cause: error, retryAfter: stream.retry)
        }
        guard let event else {
            // The server's reconnection time also holds after a regular end.
            guard let retry = stream.retry else { return nil }
            throw LarderError(.offline, "The server has ended the event stream.", retryAfter: retry)
        }
        return LiveSync.Message(
            APIClient.Event(name: event.type, data: event.data, id: event.id),
            events,
            received
        )
    }
}

private struct WebSocketChannel: LiveSync.Channel {
    let connection: any WebSocketConnection
    let events: APIClient.Events
    let received: ReceivedEvents

    init(_ connection: any WebSocketConnection, _ events: APIClient.Events, _ received: ReceivedEvents) {
        self.connection = connection
        self.events = events
        self.received = received
    }

    func receive() async throws(LarderError) -> LiveSync.Message? {
        while true {
            let message: WebSocketClient.Message?
            do throws(WebSocketError) { message = try await connection.receive() } catch {
                throw LarderError(error.code == .cancelled ? .cancelled : .offline, "\(error)", cause: error)
            }
            guard let message else { return nil }
            guard case .text(let text) = message else { continue }
            return LiveSync.Message(APIClient.Event(name: "message", data: text), events, received)
        }
    }
}
