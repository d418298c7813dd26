public import Larder
import LarderModels

extension Chat {
    /// Sends a message: it is durable and shown when this returns, and is sent in order when the network allows it.
    ///
    /// - Throws: `.invalidArgument` for an empty text and for more than 4,000 Unicode scalars; `.unauthorized` if no user is signed in;
    ///   `.storage` or `.outboxFull` if it could not be stored.
    @discardableResult
    public func send(_ text: String, to conversation: String) throws(LarderError) -> OperationID? {
        try client.cache.enqueue(try change(.create, nil, conversation, text), operation)
    }

    /// Replaces the text of a message of the signed-in user. A message that was not sent yet is sent with the new text.
    ///
    /// If the message was deleted meanwhile, the edit ends without an error, and the message disappears.
    ///
    /// - Parameters:
    ///   - message: its ID; the local one of an unsent message stays valid.
    ///   - conversation: its conversation.
    ///   - text: the new text.
    /// - Throws: as `send`.
    @discardableResult
    public func edit(_ message: String, in conversation: String, to text: String) throws(LarderError) -> OperationID? {
        try client.cache.enqueue(try change(.edit, message, conversation, text), operation)
    }

    /// Deletes a message of the signed-in user. If it was not sent yet, nothing is sent.
    ///
    /// - Parameters:
    ///   - message: its ID; the local one of an unsent message stays valid.
    ///   - conversation: its conversation.
    /// - Returns: the queued operation; nil if nothing needs to be sent.
    /// - Throws: as `send`.
    @discardableResult
    public func delete(_ message: String, in conversation: String) throws(LarderError) -> OperationID? {
        try client.cache.enqueue(try change(.delete, message, conversation, ""), operation)
    }

    /// A change that was not enqueued yet.
    ///
    /// - Throws: `.invalidArgument` and `.unauthorized` as `send`.
    func change(_ kind: TextChange.Kind, _ id: String?, _ conversation: String, _ text: String) throws(LarderError)
        -> TextChange
    {
        var change = try TextChange(kind, id, text, maximum: 4_000, client)
        change.conversationID = conversation
        return change
    }

    /// Messages of a conversation, and their photos, are sent one after another.
    static func scope(_ conversation: String) -> String { "conversation/" + conversation }

    static func operation(_ source: HTTPSource, _ cache: LarderCache) -> WriteBehind<TextChange, Message?> {
        var operation = TextChange.operation(
            "message",
            scope: { scope($0.conversationID ?? "") },
            list: { messagesKey($0.conversationID ?? "") },
            new: { change in
                Message(
                    id: change.id,
                    conversationID: change.conversationID ?? "",
                    authorID: change.authorID,
                    clientID: change.clientID,
                    text: change.text,
                    sentAt: change.writtenAt,
                    version: 0,
                    updatedAt: change.writtenAt
                )
            },
            edit: { change, message in
                message.text = change.text
                message.editedAt = change.writtenAt
            },
            cache
        ) { change, key throws(LarderError) -> Message? in
            if change.kind == .create {
                let image = change.imageID.map { ["id": $0] }
                let body = TextChange.Body(text: change.text, clientID: change.clientID, image: image)
                let path = path(change.conversationID ?? "")
                return try await source.send(.post, path, body, [.idempotencyKey: key], as: Message.self).value
            }
            let path = "/v1/messages/\(HTTPSource.escape(change.id))"
            return try await LarderError.unlessDeleted { () async throws(LarderError) in
                guard change.kind == .edit else {
                    try await source.send(.delete, path)
                    return nil
                }
                let fields: Fields = [.contentType: "application/merge-patch+json"]
                let body = TextChange.Body(text: change.text)
                return try await source.send(.patch, path, body, fields, as: Message.self).value
            }
        }
        // Later messages are not sent out of order; the user decides what to do about the rejected one.
        operation.rejectionBlocksScope = true
        return operation
    }
}
