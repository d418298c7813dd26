import Larder

/// A change of a post or a message of the signed-in user that waits to be sent.
public struct TextChange: Codable, Sendable, Hashable {
    /// The kind of change.
    public enum Kind: String, Codable, Sendable, Hashable {
        case create, edit, delete
    }

    /// The kind of change.
    public var kind: Kind
    /// The ID of the post or message; a local one until the server has confirmed its creation.
    public var id: String
    /// The user ID of the author.
    public var authorID: String
    /// The new text; empty for a deletion.
    public var text: String
    /// The time of writing, RFC 3339.
    public var writtenAt: String
    /// The conversation of a message; nil for a post.
    public var conversationID: String?
    /// The ID of the photo; a local one until it is uploaded. Nil: none.
    public var imageID: String?

    /// The ID that this device has given to a new item, by which the server recognises repeated sends.
    var clientID: String { String(id.dropFirst(LocalID.prefix.count)) }

    /// The content of a request.
    struct Body: Encodable, Sendable {
        var text: String
        var clientID: String?
        var image: [String: String]?

        private enum CodingKeys: String, CodingKey {
            case text, image
            case clientID = "clientId"
        }
    }

    /// - Parameters:
    ///   - id: nil: a new one.
    ///   - maximum: the most Unicode scalars of a text.
    /// - Throws: `.invalidArgument` for a text that is empty or too long; `.unauthorized` if no user is signed in.
    init(
        _ kind: Kind,
        _ id: String?,
        _ text: String,
        maximum: Int,
        _ client: APIClient
    ) throws(LarderError) {
        let length = text.unicodeScalars.count
        guard kind == .delete || (1...maximum).contains(length) else {
            throw LarderError(
                .invalidArgument,
                "The text has \(length) Unicode scalars; 1 to \(maximum) are allowed. Shorten it."
            )
        }
        guard let author = client.session.userID else {
            throw LarderError(.unauthorized, "No user is signed in. Sign in before writing.")
        }
        let configuration = client.cache.configuration
        self.kind = kind
        self.id =
            id.map { LocalID.current($0, in: client.cache) } ?? LocalID.prefix + configuration.makeIdempotencyKey()
        authorID = author
        self.text = text
        writtenAt = configuration.wallClock.now.rfc3339()
    }

    /// Two changes of one item before they are sent.
    private static func coalesce(_ old: TextChange, _ new: TextChange) -> Outbox.Coalesced<TextChange> {
        switch (old.kind, new.kind) {
        case (.create, .edit):
            var merged = old
            merged.text = new.text
            return .replace(merged)
        case (.create, .delete): return .removeBoth
        case (.edit, .edit), (.edit, .delete), (.delete, .delete): return .replace(new)
        default: return .keepBoth
        }
    }

    /// The operation of changes of the items of timelines.
    ///
    /// - Parameters:
    ///   - list: the timeline of a changed item.
    ///   - new: a new item as it is shown until the server has confirmed it.
    ///   - edit: shows an edit.
    ///   - send: sends a change of an item whose ID is the server's unless it is new; returns the item, nil if it was deleted.
    static func operation<Item: CacheEntity>(
        _ name: String,
        scope: @escaping @Sendable (TextChange) -> String,
        list: @escaping @Sendable (TextChange) -> QueryKey,
        new: @escaping @Sendable (TextChange) -> Item,
        edit: @escaping @Sendable (TextChange, inout Item) -> Void,
        _ cache: LarderCache,
        send: @escaping @Sendable (TextChange, _ key: String) async throws(LarderError) -> Item?
    ) -> WriteBehind<TextChange, Item?> where Item.ID == String {
        var operation = WriteBehind<TextChange, Item?>(
            name,
            scope: scope,
            changes: { change, local in
                let item = Item.key(change.id)
                switch change.kind {
                case .create:
                    local.create(new(change))
                    local.edit(list(change)) { if !$0.contains(item) { $0.insert(item, at: 0) } }
                case .edit: local.modify(Item.self, change.id) { edit(change, &$0) }
                case .delete:
                    local.remove(Item.self, change.id)
                    local.edit(list(change)) { $0.removeAll { $0 == item } }
                }
            },
            send: { [weak cache] attempts in
                guard let attempt = attempts.first else { return [] }
                var change = attempt.input
                if change.kind != .create {
                    guard let id = LocalID.serverID(change.id, in: cache) else {
                        return [.rejected(LocalID.notCreated(change.id))]
                    }
                    change.id = id
                } else if let image = change.imageID, image.hasPrefix(LocalID.prefix) {
                    return [.rejected(LocalID.notCreated(image))]
                }
                return [.accepted(try await send(change, attempt.idempotencyKey))]
            }
        )
        operation.coalescingKey = { $0.id }
        operation.coalesce = { coalesce($0, $1) }
        operation.serverIDs = { change, item in
            guard change.kind == .create, let item else { return [:] }
            return [change.id: item.id]
        }
        operation.replacingIDs = { change, ids in
            var change = change
            change.id = ids[change.id] ?? change.id
            change.imageID = change.imageID.map { ids[$0] ?? $0 }
            return change
        }
        operation.acknowledge = { change, item, update in
            switch (change.kind, item) {
            case (.create, let item?):
                update.insert(item, in: list(change), isNew: true, isOwn: true) { CacheUpdate.isOlder($1, $0) }
            case (_, let item?): update.put(item)
            case (_, nil): update.remove(Item.self, change.id)
            }
        }
        return operation
    }
}
