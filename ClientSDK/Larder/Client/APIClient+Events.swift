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
            guard let channel = events.channels.first(where: { $0.kind == kind }) else {
                throw LarderError(.invalidArgument, "There is no channel of the kind \(kind.rawValue).")
            }
            return try await opener.channel(channel, lastEventID: "") { event in
                // Events without an ID of their own repeat the last one, so a known ID is no reason to ignore an event.
                _ = received.insert(event.id)
                return .update { update in try events.apply(event, &update) }
            }
        }
    }
}

extension APIClient {
    /// Opens a live channel for `LiveSync.Source`, authorized by the session; once more after a 401 if the tokens were renewed.
    ///
    /// - Parameters:
    ///   - channel: the kind and the place of the channel.
    ///   - lastEventID: the ID of the last received server-sent event; empty for none.
    ///   - message: reads an event; nil: it has nothing for this version of the app. An error ends the channel.
    /// - Throws: `.offline`, with `retryAfter` if the host has asked for a pause; `.rejected` with the status; `.gone` if the server has
    ///   ended an event stream for good (204); `.unauthorized`.
    public func openChannel(
        _ channel: Events.Channel,
        lastEventID: String = "",
        _ message: @escaping @Sendable (Event) throws(LarderError) -> LiveSync.Message?
    ) async throws(LarderError) -> any LiveSync.Channel {
        try await channels.channel(channel, lastEventID: lastEventID, message)
    }
}

extension LiveChannelOpener {
    fileprivate func channel(
        _ channel: APIClient.Events.Channel,
        lastEventID: String,
        _ message: @escaping @Sendable (APIClient.Event) throws(LarderError) -> LiveSync.Message?
    ) async throws(LarderError) -> any LiveSync.Channel {
        switch channel {
        case .eventStream(let path):
            let stream = try await eventStream(path, lastEventID: lastEventID)
            return EventChannel(message: message) { () async throws(LarderError) in
                do throws(EventStreamError) {
                    if let event = try await stream.receive() {
                        return APIClient.Event(name: event.type, data: event.data, id: event.id)
                    }
                } catch {
                    let code: ErrorCode<LarderError> = error.code == .cancelled ? .cancelled : .offline
                    throw LarderError(code, "\(error)", cause: error, retryAfter: stream.retry)
                }
                // The server's reconnection time also holds after a regular end.
                guard let retry = stream.retry else { return nil }
                throw LarderError(.offline, "The server has ended the event stream.", retryAfter: retry)
            }
        case .webSocket(let path, let subprotocols):
            let connection = try await webSocket(path, subprotocols: subprotocols)
            return EventChannel(message: message) { () async throws(LarderError) in
                do throws(WebSocketError) {
                    while let message = try await connection.receive() {
                        if case .text(let text) = message { return APIClient.Event(name: "message", data: text) }
                    }
                    return nil
                } catch {
                    throw LarderError(error.code == .cancelled ? .cancelled : .offline, "\(error)", cause: error)
                }
            }
        }
    }
}

private struct EventChannel: LiveSync.Channel {
    let message: @Sendable (APIClient.Event) throws(LarderError) -> LiveSync.Message?
    /// The next event; nil at the end.
    let next: @Sendable () async throws(LarderError) -> APIClient.Event?

    func receive() async throws(LarderError) -> LiveSync.Message? {
        while let event = try await next() { if let message = try message(event) { return message } }
        return nil
    }
}
