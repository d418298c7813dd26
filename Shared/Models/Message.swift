/// A conversation among its members.
public struct Conversation: Codable, Sendable, Hashable, Identifiable {
    /// The conversation's identifier.
    public var id: String
    /// What its members call it; nil between two.
    public var title: String?
    /// Who takes part.
    public var memberIds: [String]
    /// The newest message.
    public var lastMessageId: String?
    /// Grows with every change.
    public var version: Int64
    /// When it last changed, RFC 3339.
    public var updatedAt: String
}

/// A message of a conversation.
public struct Message: Codable, Sendable, Hashable, Identifiable {
    /// The message's identifier: the server's, or a local one until the server has it.
    public var id: String
    /// The conversation that it belongs to.
    public var conversationId: String
    /// Who wrote it.
    public var authorId: String
    /// What its sender called it before the server had it.
    public var clientId: String?
    /// What it says.
    public var text: String
    /// When it was sent, RFC 3339.
    public var sentAt: String
    /// When its text was last changed, RFC 3339.
    public var editedAt: String?
    /// Grows with every change; 0 where the server does not have it yet.
    public var version: Int64
    /// When it last changed, RFC 3339.
    public var updatedAt: String

    /// A message.
    public init(
        id: String,
        conversationId: String,
        authorId: String,
        clientId: String?,
        text: String,
        sentAt: String,
        editedAt: String? = nil,
        version: Int64,
        updatedAt: String
    ) {
        self.id = id
        self.conversationId = conversationId
        self.authorId = authorId
        self.clientId = clientId
        self.text = text
        self.sentAt = sentAt
        self.editedAt = editedAt
        self.version = version
        self.updatedAt = updatedAt
    }
}
