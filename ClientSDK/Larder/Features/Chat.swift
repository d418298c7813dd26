import LarderHTTP
public import LarderModels
import LarderTime

/// Conversations: kept on disk, told of live, sent in order when there is a network, and never twice.
public struct Chat: Sendable {
    /// A message that is to be sent.
    public struct Draft: Codable, Sendable, Hashable {
        /// The conversation.
        public var conversationID: String
        /// What it is called until the server has it.
        public var clientID: String
        /// Who writes it.
        public var authorID: String
        /// What it says.
        public var text: String
        /// When it was written, RFC 3339.
        public var writtenAt: String
    }

    static let localPrefix = "local-"
    static let conversationsKey = QueryKey("conversations")

    static func messagesKey(_ conversation: String) -> QueryKey { QueryKey("messages", ["conversation": conversation]) }

    static func timelineKey(_ conversation: String) -> QueryKey {
        QueryKey("messages timeline", ["conversation": conversation])
    }

    private let cache: LarderCache
    private let source: HTTPSource
    private let session: Session
    /// The operation that is in the outbox: to edit a message that was refused (`Outbox.edit`), or to read it
    /// (`OutboxEntry.input`).
    public let operation: WriteBehind<Draft, Message>

    init(_ cache: LarderCache, _ source: HTTPSource, _ session: Session) {
        self.cache = cache
        self.source = source
        self.session = session
        operation = Self.operation(source)
        cache.outbox.register(operation)
    }

    /// The conversations of who is signed in, as a resource.
    public var conversations: Resource<EntityList<Conversation>> {
        let source = source
        var conversations = Resource<EntityList<Conversation>>.list("conversations", of: Conversation.self) { context in
            try await source.page("/v1/conversations", [("limit", "100")], context)
        }
        conversations.tags = [LarderClient.everything]
        return conversations
    }

    /// For as long as the live channel keeps up, nothing else has to be asked.
    private static let freshness = FreshnessDemand.rule(
        FreshnessRule(.any([.timeToLive(.seconds(30)), .feed("larder", within: .seconds(120))]))
    )

    /// The newest messages of a conversation, newest first, with what was written here on top, as a resource. `timeline` has older
    /// ones too.
    public func messages(_ conversation: String) -> Resource<EntityList<Message>> {
        let source = source
        var messages = Resource<EntityList<Message>>(
            "messages",
            ["conversation": conversation],
            of: Self.normalizer,
            freshness: Self.freshness,
            policy: .staleWhileRevalidate
        ) { context in
            try await source.page(Self.path(conversation), [("limit", "50")], context)
        }
        messages.tags = [LarderClient.everything]
        return messages
    }

    /// All messages of a conversation in pages, newest first, with what was written here on top: `Timeline.loadOlder` scrolls back,
    /// and what was scrolled to once costs no request again. What is written, edited and deleted elsewhere comes by the change
    /// feed, in every page that is loaded.
    ///
    /// - Parameter holdsBackNew: whether what others write is counted only, until the reader takes it: for one who has scrolled back.
    public func timeline(_ conversation: String, holdsBackNew: Bool = false) -> Timeline<Message> {
        let source = source
        var pages = PagedResource<Message>(
            Self.timelineKey(conversation).name,
            ["conversation": conversation],
            pageSize: 50,
            freshness: Self.freshness
        ) { request in
            let context = FetchContext(validator: request.validator, isForced: request.isForced)
            let query = [("limit", "\(request.limit)"), ("after", request.cursor)]
            let fetched: Fetched<EntityList<Message>> = try await source.page(Self.path(conversation), query, context)
            return fetched.map { EntityPage($0.items, nextCursor: $0.nextCursor) }
        }
        pages.localName = { $0.isPending ? nil : $0.clientId.map { Self.localPrefix + $0 } }
        pages.tags = [LarderClient.everything]
        return cache.timeline(pages, holdsBackNew: holdsBackNew)
    }

    private static func path(_ conversation: String) -> String {
        "/v1/conversations/\(HTTPSource.escape(conversation))/messages"
    }

    /// A message that is told of before its sending is acknowledged is shown once.
    private static let normalizer = Normalizer<EntityList<Message>>(
        split: EntityList<Message>.normalizer.split,
        join: { rest, lookup in
            var list = try EntityList<Message>.normalizer.join(rest, &lookup)
            guard list.items.contains(where: \.isPending) else { return list }
            let sent = Set(list.items.lazy.filter { !$0.isPending }.compactMap(\.clientId))
            list.items.removeAll { $0.isPending && sent.contains($0.clientId ?? "") }
            return list
        }
    )

    /// Sends a message: it is durable and shown when this returns, and leaves in order when there is a network.
    ///
    /// - Throws: `.storage` where it could not be kept, `.unauthorized` where nobody is signed in, `.invalidArgument` for no text, and
    ///   for more than 4,000 Unicode scalars.
    @discardableResult
    public func send(_ text: String, to conversation: String) throws(LarderError) -> OperationID? {
        let length = text.unicodeScalars.count
        guard (1...4_000).contains(length) else {
            throw LarderError(
                .invalidArgument,
                "A message has between 1 and 4,000 Unicode scalars; this one has \(length). Shorten it, or send several."
            )
        }
        guard let author = session.userID else { throw LarderError(.unauthorized, "Sign in before you write.") }
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
        var clientId: String
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
                        conversationId: draft.conversationID,
                        authorId: draft.authorID,
                        clientId: draft.clientID,
                        text: draft.text,
                        sentAt: draft.writtenAt,
                        version: 0,
                        updatedAt: draft.writtenAt
                    )
                )
                for list in [messagesKey(draft.conversationID), timelineKey(draft.conversationID)] {
                    changes.edit(list) { $0.insert(Message.key(id), at: 0) }
                }
            },
            send: { attempts in
                guard let attempt = attempts.first else { return [] }
                let draft = attempt.input
                let reply = try await source.send(
                    .post,
                    path(draft.conversationID),
                    Request(text: draft.text, clientId: draft.clientID),
                    [.idempotencyKey: attempt.idempotencyKey],
                    as: Message.self
                )
                return [.accepted(reply.value)]
            }
        )
        // Those behind a refused message are not sent out of order: whoever wrote them decides.
        operation.whenRefused = .hold
        operation.acknowledge = { draft, message, update in
            update.insert(message, in: timelineKey(draft.conversationID), isNew: true, isOwn: true) {
                Update.isOlder($1, $0)
            }
            update.insert(message.entityKey, atFrontOf: messagesKey(draft.conversationID))
        }
        return operation
    }
}
