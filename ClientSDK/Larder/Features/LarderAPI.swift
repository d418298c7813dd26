import Foundation
import LarderHTTP
import LarderModels
import Synchronization

extension ChangeFeed {
    /// The server's change feed.
    static func larder(_ source: HTTPSource) -> ChangeFeed {
        ChangeFeed(
            "larder",
            read: { token throws(LarderError) in
                try await source.changes([("since", token), ("limit", "500")])
            },
            present: { () async throws(LarderError) in
                try await source.changes([("since", "now"), ("limit", "1")]).nextToken
            },
            invalidateAll: { update in
                update.invalidate(all: Profile.self)
                update.invalidate(all: Post.self)
                update.invalidate(all: Account.self)
                update.invalidate(all: Transaction.self)
                update.invalidate(all: Conversation.self)
                update.invalidate(all: Message.self)
                update.invalidate(tag: LarderClient.everything)
            }
        )
    }
}

extension LarderClient {
    /// The tag of every list: what a lost change token makes stale.
    static let everything = "larder.everything"
}

extension HTTPSource {
    /// A part of the change feed.
    func changes(_ query: [(String, String?)]) async throws(LarderError) -> ChangeBatch {
        let fetched = try await fetch("/v1/changes", query, context: FetchContext(), as: ChangePageDocument.self)
        guard let page = fetched.value else { throw .tokenGone("The server does not know the change token any more.") }
        return ChangeBatch(page.items.map(\.remote), nextToken: page.nextToken, hasMore: page.hasMore)
    }
}

extension LiveSource {
    /// The server's live channels.
    static func larder(
        _ source: HTTPSource,
        _ session: Session,
        _ webSockets: WebSocketClient,
        _ kinds: [LiveKind],
        _ configuration: CacheConfiguration
    ) -> LiveSource {
        LiveSource(kinds) { kind, since throws(LarderError) in
            var request = TransportRequest(url: source.url(kind.path, [("since", since)]))
            try await session.authorize(&request)
            switch kind {
            case .webSocket:
                let url = request.url.hasPrefix("http") ? "ws" + request.url.dropFirst(4) : request.url
                do throws(WebSocketError) {
                    let connection = try await webSockets.connect(
                        url,
                        fields: request.fields,
                        subprotocols: ["larder.live.v1"]
                    )
                    return WebSocketLiveChannel(connection)
                } catch {
                    if error.status?.code == 401 { _ = try await session.renew(after: request) }
                    throw LarderError(
                        error.code == .cancelled ? .cancelled : .offline,
                        "\(error)",
                        cause: error,
                        status: error.status.map { Int($0.code) }
                    )
                }
            case .eventStream:
                let clock = ConfiguredClock(configuration)
                let client = EventStreamClient(source.transport, clock: clock)
                do throws(EventStreamError) {
                    let stream = try await client.open(request.url, fields: request.fields, lastEventID: since ?? "")
                    return EventStreamLiveChannel(stream)
                } catch {
                    if error.status?.code == 401 { _ = try await session.renew(after: request) }
                    throw LarderError(
                        error.code == .cancelled ? .cancelled : .offline,
                        "\(error)",
                        cause: error,
                        status: error.status.map { Int($0.code) }
                    )
                }
            case .longPoll: return LongPollLiveChannel(source, since: since)
            }
        }
    }
}

extension LiveKind {
    /// Where the server has it.
    fileprivate var path: String {
        switch self {
        case .webSocket: "/v1/live"
        case .eventStream: "/v1/live/events"
        case .longPoll: "/v1/changes"
        }
    }
}

/// The live channel over a WebSocket.
private struct WebSocketLiveChannel: LiveChannel {
    let connection: any WebSocketConnection

    init(_ connection: any WebSocketConnection) { self.connection = connection }

    func receive() async throws(LarderError) -> LiveMessage? {
        while true {
            let message: WebSocketMessage?
            do { message = try await connection.receive() } catch {
                throw LarderError(error.code == .cancelled ? .cancelled : .offline, "\(error)", cause: error)
            }
            guard let message else { return nil }
            guard case .text(let text) = message, let live = try LiveMessage(json: text) else { continue }
            return live
        }
    }
}

/// The live channel as server-sent events.
private final class EventStreamLiveChannel: LiveChannel {
    private let stream: EventStream

    init(_ stream: EventStream) { self.stream = stream }

    func receive() async throws(LarderError) -> LiveMessage? {
        while true {
            var iterator = stream.makeAsyncIterator()
            let event: ServerSentEvent?
            do { event = try await iterator.next() } catch {
                throw LarderError(error.code == .cancelled ? .cancelled : .offline, "\(error)", cause: error)
            }
            guard let event else { return nil }
            guard let live = try LiveMessage(json: event.data) else { continue }
            return live
        }
    }
}

/// The change feed itself: each request waits until there is a page.
private final class LongPollLiveChannel: LiveChannel {
    private let source: HTTPSource
    private let since: Mutex<String?>

    init(_ source: HTTPSource, since: String?) {
        self.source = source
        self.since = Mutex(since)
    }

    func receive() async throws(LarderError) -> LiveMessage? {
        let token = since.withLock { $0 }
        let batch = try await source.changes([("since", token), ("limit", "500"), ("wait", "25")])
        // The next request waits for what follows on this page.
        since.withLock { $0 = batch.nextToken }
        guard let token else { return .hello(token: batch.nextToken) }
        return .page(batch, since: token)
    }
}

extension LiveMessage {
    /// A message as the server writes it; nil for one that says nothing to this version.
    fileprivate init?(json text: String) throws(LarderError) {
        let document: LiveDocument
        do { document = try JSONDecoder().decode(LiveDocument.self, from: Data(text.utf8)) } catch {
            throw LarderError(
                .unexpectedReply,
                "The live channel has said something that is not JSON: \(error)",
                cause: error
            )
        }
        guard let token = document.token else { return nil }
        guard let change = document.change, let previous = document.previousToken else {
            self = .hello(token: token)
            return
        }
        self = .change(LiveChange(change.remote, token: token, previousToken: previous))
    }
}
