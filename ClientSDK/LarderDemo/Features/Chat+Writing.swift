public import Larder
import LarderModels

extension Chat {
    /// Sends a message: it is durable and shown when this returns, and is sent in order when the network allows it.
    ///
    /// - Throws: `.invalidArgument` for an empty text and for more than 4,000 Unicode scalars; `.unauthorized` if no user is signed in;
    ///   `.storage` or `.outboxFull` if it could not be stored.
    @discardableResult
    public func send(_ text: String, to conversation: String) throws(LarderError) -> OperationID? {
        try send(text, imageID: nil, to: conversation)
    }

    func send(_ text: String, imageID: String?, to conversation: String) throws(LarderError) -> OperationID? {
        try enqueue(.create, nil, conversation, text, imageID)
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
        try enqueue(.edit, message, conversation, text)
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
        try enqueue(.delete, message, conversation, "")
    }

    private func enqueue(
        _ kind: TextChange.Kind,
        _ id: String?,
        _ conversation: String,
        _ text: String,
        _ imageID: String? = nil
    ) throws(LarderError) -> OperationID? {
        var change = try TextChange(kind, id, text, maximum: 4_000, client)
        (change.conversationID, change.imageID) = (conversation, imageID)
        return try client.cache.enqueue(change, operation)
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
