import Foundation
import Larder
import LarderModels

extension ChangeFeed {
    /// The change feed of the demo backend.
    static func demo(_ source: HTTPSource) -> ChangeFeed {
        ChangeFeed(
            "larder",
            read: { token throws(LarderError) in
                try await source.changes([("since", token), ("limit", "500")])
            },
            present: { () async throws(LarderError) in
                try await source.changes([("since", "now"), ("limit", "1")])
            },
            invalidateAll: { update in
                update.invalidate(all: Profile.self)
                update.invalidate(all: Post.self)
                update.invalidate(all: Account.self)
                update.invalidate(all: Transaction.self)
                update.invalidate(all: Conversation.self)
                update.invalidate(all: Message.self)
                update.invalidate(all: WorkItem.self)
                update.invalidate(tag: LarderClient.everything)
            }
        )
    }
}

extension LarderClient {
    /// The tag of all lists, which are invalidated when the change token has expired.
    static let everything = "larder.everything"
}

extension HTTPSource {
    /// A part of the change feed.
    func changes(_ query: [(String, String?)]) async throws(LarderError) -> ChangeFeed.Batch {
        let fetched = try await fetch("/v1/changes", query, context: FetchContext(), as: ChangePageDocument.self)
        guard let page = fetched.value else { throw .tokenGone("The server does not know the change token any more.") }
        return ChangeFeed.Batch(page.items.map(\.remote), nextToken: page.nextToken, hasMore: page.hasMore)
    }
}

extension LiveSync.Source {
    /// The server's live channels.
    static func demo(_ client: APIClient, _ kinds: [LiveSync.Kind]) -> LiveSync.Source {
        // Weak, so that releasing the client ends its services at once and not with the last channel.
        LiveSync.Source(kinds) { [weak client] kind, since throws(LarderError) in
            guard let client else { throw LarderError(.closed, "The client was released.") }
            let path = client.source.url(kind == .webSocket ? "/v1/live" : "/v1/live/events", [("since", since)])
            return switch kind {
            case .webSocket:
                try await client.openChannel(.webSocket(path, subprotocols: ["larder.live.v1"]), message)
            case .eventStream:
                try await client.openChannel(.eventStream(path), lastEventID: since ?? "", message)
            case .longPoll:
                LiveSync.longPoll(since: since, in: client.cache) {
                    [source = client.source] since throws(LarderError) in
                    try await source.changes([("since", since), ("limit", "500"), ("wait", "25")])
                }
            }
        }
    }

    /// A message of the server; nil if it has nothing for this version.
    @Sendable private static func message(_ event: APIClient.Event) throws(LarderError) -> LiveSync.Message? {
        let document: LiveDocument
        do { document = try JSONDecoder().decode(LiveDocument.self, from: Data(event.data.utf8)) } catch {
            throw LarderError(
                .unexpectedReply,
                "A message of the live channel cannot be decoded: \(error)",
                cause: error
            )
        }
        guard let token = document.token else { return nil }
        guard let change = document.change, let previous = document.previousToken else { return .hello(token: token) }
        return .page(ChangeFeed.Batch([change.remote], nextToken: token), since: previous)
    }
}
