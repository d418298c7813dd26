/// A conversation of two or more members.
public struct Conversation: Codable, Sendable, Hashable, Identifiable {
    /// The conversation's ID.
    public var id: String
    /// The title; nil for a conversation of two members.
    public var title: String?
    /// The user IDs of the members.
    public var memberIDs: [String]
    /// The ID of the newest message.
    public var lastMessageID: String?
    /// Increases with every change.
    public var version: Int64
    /// The time of the last change, RFC 3339.
    public var updatedAt: String

    private enum CodingKeys: String, CodingKey {
        case id, title, version, updatedAt
        case memberIDs = "memberIds"
        case lastMessageID = "lastMessageId"
    }
}

/// A message of a conversation.
public struct Message: Codable, Sendable, Hashable, Identifiable {
    /// The server's ID; a local one until the server has confirmed the message.
    public var id: String
    public var conversationID: String
    /// The user ID of the author.
    public var authorID: String
    /// The ID that the sending client has given, by which repeated sends are recognised.
    public var clientID: String?
    public var text: String
    /// The photo; nil for a message without one.
    public var image: Post.Image?
    /// The time of sending, RFC 3339.
    public var sentAt: String
    /// The time of the last edit, RFC 3339; nil if it was never edited.
    public var editedAt: String?
    /// Increases with every change; 0 until the server has confirmed the message.
    public var version: Int64
    /// The time of the last change, RFC 3339.
    public var updatedAt: String

    /// A message with the given fields.
    public init(
        id: String,
        conversationID: String,
        authorID: String,
        clientID: String?,
        text: String,
        image: Post.Image? = nil,
        sentAt: String,
        editedAt: String? = nil,
        version: Int64,
        updatedAt: String
    ) {
        self.id = id
        self.conversationID = conversationID
        self.authorID = authorID
        self.clientID = clientID
        self.text = text
        self.image = image
        self.sentAt = sentAt
        self.editedAt = editedAt
        self.version = version
        self.updatedAt = updatedAt
    }

    private enum CodingKeys: String, CodingKey {
        case id, text, image, sentAt, editedAt, version, updatedAt
        case conversationID = "conversationId"
        case authorID = "authorId"
        case clientID = "clientId"
    }
}
