public import Larder
public import LarderModels

/// Conversations and their messages.
///
/// Messages are stored on disk, updated by the change feed, and sent through the outbox: in order, and exactly once.
public struct Chat: Sendable {
    /// A message to be sent.
    public struct Draft: Codable, Sendable, Hashable {
        public var conversationID: String
        /// The ID that this device has given, by which the server recognises repeated sends.
        public var clientID: String
        /// The user ID of the author.
        public var authorID: String
        public var text: String
        /// The time of writing, RFC 3339.
        public var writtenAt: String
    }

    static let localPrefix = "local-"
    static let conversationsKey = QueryKey("conversations")

    static func messagesKey(_ conversation: String) -> QueryKey { QueryKey("messages", ["conversation": conversation]) }

    private let cache: LarderCache
    private let source: HTTPSource
    private let isCached: @Sendable () -> Bool
    private let session: BearerSession
    /// The operation of messages, to edit a rejected one (`Outbox.edit`) or to decode a queued one
    /// (`Outbox.Entry.input`).
    public let operation: WriteBehind<Draft, Message>

    init(
        _ cache: LarderCache,
        _ source: HTTPSource,
        _ session: BearerSession,
        isCached: @escaping @Sendable () -> Bool
    ) {
        self.cache = cache
        self.isCached = isCached
        self.source = source
        self.session = session
        operation = Self.operation(source)
        cache.outbox.register(operation)
    }

    /// The conversations of the signed-in user.
    public var conversations: Resource<EntityList<Conversation>> {
        let source = source
        var conversations = Resource<EntityList<Conversation>>.list(
            "conversations",
            of: Conversation.self,
            freshness: .interactive
        ) { context in
            try await source.page("/v1/conversations", PageRequest(context, limit: 100), by: .demo)
        }
        conversations.tags = [LarderClient.everything]
        conversations.isCached = isCached
        return conversations
    }

    /// Messages are not fetched while the change feed has caught up within two minutes.
    private static let freshness = Freshness.Demand.rule(
        Freshness.Rule(.any([.timeToLive(.seconds(30)), .feed("larder", within: .seconds(120))]))
    )

    private func pages(_ conversation: String) -> PagedResource<Message> {
        let source = source
        var pages = PagedResource<Message>(
            "messages",
            ["conversation": conversation],
            pageSize: 50,
            freshness: Self.freshness
        ) { request in
            try await source.page(Self.path(conversation), request, by: .demo)
        }
        pages.temporaryID = { $0.isPending ? nil : $0.clientID.map { Self.localPrefix + $0 } }
        pages.tags = [LarderClient.everything]
        pages.isCached = isCached
        return pages
    }

    /// The messages of a conversation that are loaded, newest first, with unsent ones on top, as a resource.
    public func messages(_ conversation: String) -> Resource<Timeline<Message>.List> { pages(conversation).list }

    /// All messages of a conversation in pages, newest first, with unsent ones on top.
    ///
    /// `Timeline.loadOlder` loads the next page. Loaded pages are stored, and the change feed updates them.
    ///
    /// - Parameter holdsBackNew: whether new messages of others are only counted until they are taken, for a reader who has scrolled
    ///   back.
    public func timeline(_ conversation: String, holdsBackNew: Bool = false) -> Timeline<Message> {
        cache.timeline(pages(conversation), holdsBackNew: holdsBackNew)
    }

    private static func path(_ conversation: String) -> String {
        "/v1/conversations/\(HTTPSource.escape(conversation))/messages"
    }

    /// Sends a message: it is durable and shown when this returns, and is sent in order when the network allows it.
    ///
    /// - Throws: `.invalidArgument` for an empty text and for more than 4,000 Unicode scalars; `.unauthorized` if no user is signed in;
    ///   `.storage` if it could not be stored.
    @discardableResult
    public func send(_ text: String, to conversation: String) throws(LarderError) -> OperationID? {
        let length = text.unicodeScalars.count
        guard (1...4_000).contains(length) else {
            throw LarderError(
                .invalidArgument,
                "The message has \(length) Unicode scalars; 1 to 4,000 are allowed. Shorten it, or send several."
            )
        }
        guard let author = session.userID else {
            throw LarderError(.unauthorized, "No user is signed in. Sign in before sending messages.")
        }
        let draft = Draft(
            conversationID: conversation,
            clientID: cache.configuration.makeIdempotencyKey(),
            authorID: author,
            text: text,
            writtenAt: cache.configuration.wallClock.now.rfc3339()
        )
        return try cache.enqueue(draft, operation)
    }

    private struct Request: Encodable, Sendable {
        var text: String
        var clientID: String

        private enum CodingKeys: String, CodingKey {
            case text
            case clientID = "clientId"
        }
    }

    private static func operation(_ source: HTTPSource) -> WriteBehind<Draft, Message> {
        var operation = WriteBehind<Draft, Message>(
            "message",
            scope: { "conversation/" + $0.conversationID },
            changes: { draft, changes in
                let id = localPrefix + draft.clientID
                changes.create(
                    Message(
                        id: id,
                        conversationID: draft.conversationID,
                        authorID: draft.authorID,
                        clientID: draft.clientID,
                        text: draft.text,
                        sentAt: draft.writtenAt,
                        version: 0,
                        updatedAt: draft.writtenAt
                    )
                )
                changes.edit(messagesKey(draft.conversationID)) { $0.insert(Message.key(id), at: 0) }
            },
            send: { attempts in
                guard let attempt = attempts.first else { return [] }
                let draft = attempt.input
                let reply = try await source.send(
                    .post,
                    path(draft.conversationID),
                    Request(text: draft.text, clientID: draft.clientID),
                    [.idempotencyKey: attempt.idempotencyKey],
                    as: Message.self
                )
                return [.accepted(reply.value)]
            }
        )
        // Later messages are not sent out of order; the user decides what to do about the rejected one.
        operation.onRejection = .block
        operation.acknowledge = { draft, message, update in
            update.insert(message, in: messagesKey(draft.conversationID), isNew: true, isOwn: true) {
                CacheUpdate.isOlder($1, $0)
            }
        }
        return operation
    }
}
