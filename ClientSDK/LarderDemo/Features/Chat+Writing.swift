public import Larder
import LarderModels

extension Chat {
    /// A change of the signed-in user's messages that waits to be sent.
    public struct Change: Codable, Sendable, Hashable {
        /// The kind of change.
        public enum Kind: String, Codable, Sendable, Hashable {
            case send, edit, delete
        }

        /// The kind of change.
        public var kind: Kind
        /// The conversation's ID.
        public var conversationID: String
        /// The message's ID; a local one until the server has confirmed the message.
        public var messageID: String
        /// The user ID of the author.
        public var authorID: String
        /// The new text; empty for a deletion.
        public var text: String
        /// The time of writing, RFC 3339.
        public var writtenAt: String
        /// The ID of the photo; a local one until it is uploaded. Nil: none.
        public var imageID: String?

        /// The ID that this device has given to a new message, by which the server recognises repeated sends.
        var clientID: String { String(messageID.dropFirst(LocalID.prefix.count)) }
    }

    /// Sends a message: it is durable and shown when this returns, and is sent in order when the network allows it.
    ///
    /// - Throws: `.invalidArgument` for an empty text and for more than 4,000 Unicode scalars; `.unauthorized` if no user is signed in;
    ///   `.storage` or `.outboxFull` if it could not be stored.
    @discardableResult
    public func send(_ text: String, to conversation: String) throws(LarderError) -> OperationID? {
        try send(text, imageID: nil, to: conversation)
    }

    func send(_ text: String, imageID: String?, to conversation: String) throws(LarderError) -> OperationID? {
        try enqueue(.send, LocalID.prefix + cache.configuration.makeIdempotencyKey(), conversation, text, imageID)
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
        try enqueue(.edit, LocalID.current(message, in: cache), conversation, text)
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
        try enqueue(.delete, LocalID.current(message, in: cache), conversation, "")
    }

    private func enqueue(
        _ kind: Change.Kind,
        _ id: String,
        _ conversation: String,
        _ text: String,
        _ imageID: String? = nil
    ) throws(LarderError) -> OperationID? {
        let length = text.unicodeScalars.count
        guard kind == .delete || (1...4_000).contains(length) else {
            throw LarderError(
                .invalidArgument,
                "The message has \(length) Unicode scalars; 1 to 4,000 are allowed. Shorten it, or send several."
            )
        }
        guard let author = session.userID else {
            throw LarderError(.unauthorized, "No user is signed in. Sign in before sending messages.")
        }
        let change = Change(
            kind: kind,
            conversationID: conversation,
            messageID: id,
            authorID: author,
            text: text,
            writtenAt: cache.configuration.wallClock.now.rfc3339(),
            imageID: imageID
        )
        return try cache.enqueue(change, operation)
    }

    private struct Request: Encodable, Sendable {
        var text: String
        var clientID: String
        var image: [String: String]?

        private enum CodingKeys: String, CodingKey {
            case text, image
            case clientID = "clientId"
        }
    }

    /// Messages of a conversation, and their photos, are sent one after another.
    static func scope(_ conversation: String) -> String { "conversation/" + conversation }

    private struct Text: Encodable, Sendable {
        var text: String
    }

    static func operation(_ source: HTTPSource, _ cache: LarderCache) -> WriteBehind<Change, Message?> {
        var operation = WriteBehind<Change, Message?>(
            "message",
            scope: { scope($0.conversationID) },
            changes: { show($0, in: &$1) },
            send: { [weak cache] attempts in
                guard let attempt = attempts.first else { return [] }
                return [try await send(attempt, source, cache)]
            }
        )
        // Later messages are not sent out of order; the user decides what to do about the rejected one.
        operation.rejectionBlocksScope = true
        operation.coalescingKey = { $0.messageID }
        operation.coalesce = { old, new in
            switch (old.kind, new.kind) {
            case (.send, .edit):
                var merged = old
                merged.text = new.text
                return .replace(merged)
            case (.send, .delete): return .removeBoth
            case (.edit, .edit), (.edit, .delete), (.delete, .delete): return .replace(new)
            default: return .keepBoth
            }
        }
        operation.serverIDs = { change, message in
            guard change.kind == .send, let message else { return [:] }
            return [change.messageID: message.id]
        }
        operation.replacingIDs = { change, ids in
            var change = change
            change.messageID = ids[change.messageID] ?? change.messageID
            change.imageID = change.imageID.map { ids[$0] ?? $0 }
            return change
        }
        operation.acknowledge = { change, message, update in
            switch (change.kind, message) {
            case (.send, let message?):
                LocalID.remember(change.messageID, as: message.id, in: &update)
                update.insert(message, in: messagesKey(change.conversationID), isNew: true, isOwn: true) {
                    CacheUpdate.isOlder($1, $0)
                }
            case (_, let message?): update.put(message)
            case (_, nil): update.remove(Message.self, change.messageID)
            }
        }
        return operation
    }

    private static func show(_ change: Change, in changes: inout Outbox.LocalChanges) {
        let item = Message.key(change.messageID)
        switch change.kind {
        case .send:
            changes.create(
                Message(
                    id: change.messageID,
                    conversationID: change.conversationID,
                    authorID: change.authorID,
                    clientID: change.clientID,
                    text: change.text,
                    sentAt: change.writtenAt,
                    version: 0,
                    updatedAt: change.writtenAt
                )
            )
            changes.edit(messagesKey(change.conversationID)) { if !$0.contains(item) { $0.insert(item, at: 0) } }
        case .edit:
            changes.modify(Message.self, change.messageID) { message in
                message.text = change.text
                message.editedAt = change.writtenAt
            }
        case .delete:
            changes.remove(Message.self, change.messageID)
            changes.edit(messagesKey(change.conversationID)) { $0.removeAll { $0 == item } }
        }
    }

    private static func send(
        _ attempt: Outbox.Attempt<Change>,
        _ source: HTTPSource,
        _ cache: LarderCache?
    ) async throws(LarderError) -> Outbox.Outcome<Message?> {
        let change = attempt.input
        if change.kind == .send {
            let fields: Fields = [.idempotencyKey: attempt.idempotencyKey]
            if let image = change.imageID, image.hasPrefix(LocalID.prefix) {
                return .rejected(LocalID.notCreated(image))
            }
            let body = Request(text: change.text, clientID: change.clientID, image: change.imageID.map { ["id": $0] })
            return .accepted(
                try await source.send(.post, path(change.conversationID), body, fields, as: Message.self).value
            )
        }
        guard let id = LocalID.serverID(change.messageID, in: cache) else {
            return .rejected(LocalID.notCreated(change.messageID))
        }
        let path = "/v1/messages/\(HTTPSource.escape(id))"
        do {
            guard change.kind == .edit else {
                try await source.send(.delete, path)
                return .accepted(nil)
            }
            let fields: Fields = [.contentType: "application/merge-patch+json"]
            return .accepted(
                try await source.send(.patch, path, Text(text: change.text), fields, as: Message.self).value
            )
        } catch {
            // It is deleted already, perhaps by an attempt whose reply was lost.
            guard error.saysDeleted else { throw error }
            return .accepted(nil)
        }
    }
}
