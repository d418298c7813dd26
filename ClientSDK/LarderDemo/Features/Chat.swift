public import Larder
public import LarderModels

/// Conversations and their messages.
///
/// Messages are stored on disk, updated by the change feed, and sent through the outbox: in order, and exactly once. Messages
/// are sent, edited and deleted offline too.
public struct Chat: Sendable {
    static let conversationsKey = QueryKey("conversations")

    static func messagesKey(_ conversation: String) -> QueryKey { QueryKey("messages", ["conversation": conversation]) }

    let client: APIClient
    /// The operation of changes to messages, to edit a rejected one (`Outbox.edit`) or to decode a queued one
    /// (`Outbox.Entry.input`).
    public let operation: WriteBehind<TextChange, Message?>

    init(_ client: APIClient) {
        self.client = client
        operation = Self.operation(client.source, client.cache)
    }

    /// The conversations of the signed-in user.
    public var conversations: Resource<EntityList<Conversation>> {
        let source = client.source
        var conversations = Resource<EntityList<Conversation>>.list(
            "conversations",
            of: Conversation.self,
            freshness: .interactive
        ) { context in
            try await source.page("/v1/conversations", PageRequest(context, limit: 100), by: .demo)
        }
        conversations.tags = [LarderClient.everything]
        conversations.isCached = client.isCached("chat")
        return conversations
    }

    /// Messages are not fetched while the change feed has caught up within two minutes.
    private static let freshness = Freshness.Demand.rule(
        Freshness.Rule(.any([.timeToLive(.seconds(30)), .feed("larder", within: .seconds(120))]))
    )

    private func pages(_ conversation: String) -> PagedResource<Message> {
        let source = client.source
        var pages = PagedResource<Message>(
            "messages",
            ["conversation": conversation],
            pageSize: 50,
            freshness: Self.freshness
        ) { request in
            try await source.page(Self.path(conversation), request, by: .demo)
        }
        pages.isNewer = { CacheUpdate.isOlder($1, $0) }
        pages.temporaryID = { $0.clientID.map { LocalID.prefix + $0 } }
        pages.tags = [LarderClient.everything]
        pages.isCached = client.isCached("chat")
        return pages
    }

    /// The messages of a conversation that are loaded, newest first, with unsent ones on top, as a resource.
    public func messages(_ conversation: String) -> Resource<Timeline<Message>.List> { pages(conversation).list }

    /// All messages of a conversation in pages, newest first, with unsent ones on top.
    ///
    /// `Timeline.open` opens it at a message, such as one from a search. `Timeline.loadOlder` loads the next page. Loaded pages are stored, and the change feed updates them.
    ///
    /// - Parameters:
    ///   - conversation: the ID of the conversation.
    ///   - readerIsAtTop: whether new messages of others are shown at once. The app sets `Timeline.readerIsAtTop` to false while the
    ///     reader has scrolled back: then they are only counted.
    public func timeline(_ conversation: String, readerIsAtTop: Bool = true) -> Timeline<Message> {
        client.cache.timeline(pages(conversation), readerIsAtTop: readerIsAtTop)
    }

    static func path(_ conversation: String) -> String {
        "/v1/conversations/\(HTTPSource.escape(conversation))/messages"
    }
}
