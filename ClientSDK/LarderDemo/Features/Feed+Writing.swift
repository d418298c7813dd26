public import Larder
import LarderModels

extension Feed {
    /// A change of the signed-in user's posts that waits to be sent.
    public struct Change: Codable, Sendable, Hashable {
        /// The kind of change.
        public enum Kind: String, Codable, Sendable, Hashable {
            case create, edit, delete
        }

        /// The kind of change.
        public var kind: Kind
        /// The post's ID; a local one until the server has confirmed its creation.
        public var postID: String
        /// The user ID of the author.
        public var authorID: String
        /// The new text; empty for a deletion.
        public var text: String
        /// The time of writing, RFC 3339.
        public var writtenAt: String
    }

    /// Creates a post: it is durable and shown when this returns, and is sent when the network allows it.
    ///
    /// - Returns: the post's local ID, which `edit` and `delete` take also after the server has given it another one.
    /// - Throws: `.invalidArgument` for an empty text and for more than 2,000 Unicode scalars; `.unauthorized` if no user is signed in;
    ///   `.storage` or `.outboxFull` if it could not be stored.
    @discardableResult
    public func create(_ text: String) throws(LarderError) -> String {
        let id = LocalID.prefix + cache.configuration.makeIdempotencyKey()
        try enqueue(.create, id, text)
        return id
    }

    /// Replaces the text of a post of the signed-in user. A post that was not sent yet is sent with the new text.
    ///
    /// An edit is sent whatever the current version is: of two edits from two devices the one that arrives last wins.
    ///
    /// - Returns: the queued operation.
    /// - Throws: as `create`.
    @discardableResult
    public func edit(_ postID: String, to text: String) throws(LarderError) -> OperationID? {
        try enqueue(.edit, LocalID.current(postID, in: cache), text)
    }

    /// Deletes a post of the signed-in user. If its creation was not sent yet, nothing is sent.
    ///
    /// - Returns: the queued operation; nil if nothing needs to be sent.
    /// - Throws: as `create`.
    @discardableResult
    public func delete(_ postID: String) throws(LarderError) -> OperationID? {
        try enqueue(.delete, LocalID.current(postID, in: cache), "")
    }

    @discardableResult
    private func enqueue(_ kind: Change.Kind, _ id: String, _ text: String) throws(LarderError) -> OperationID? {
        let length = text.unicodeScalars.count
        guard kind == .delete || (1...2_000).contains(length) else {
            throw LarderError(
                .invalidArgument,
                "The post has \(length) Unicode scalars; 1 to 2,000 are allowed. Shorten it."
            )
        }
        guard let author = session.userID else {
            throw LarderError(.unauthorized, "No user is signed in. Sign in before writing posts.")
        }
        let now = cache.configuration.wallClock.now.rfc3339()
        let change = Change(kind: kind, postID: id, authorID: author, text: text, writtenAt: now)
        return try cache.enqueue(change, operation)
    }

    private struct Text: Encodable, Sendable {
        var text: String
    }

    static func operation(_ source: HTTPSource, _ cache: LarderCache) -> WriteBehind<Change, Post?> {
        var operation = WriteBehind<Change, Post?>(
            "post",
            // One scope for all posts: an edit must not overtake the creation, and posts appear in the order of writing.
            scope: { _ in "posts" },
            changes: { show($0, in: &$1) },
            send: { [weak cache] attempts in
                guard let attempt = attempts.first else { return [] }
                return [try await send(attempt, source, cache)]
            }
        )
        operation.coalescingKey = { $0.postID }
        operation.coalesce = { old, new in
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
        operation.serverIDs = { change, post in
            guard change.kind == .create, let post else { return [:] }
            return [change.postID: post.id]
        }
        operation.replacingIDs = { change, ids in
            var change = change
            change.postID = ids[change.postID] ?? change.postID
            return change
        }
        operation.acknowledge = { change, post, update in
            switch (change.kind, post) {
            case (.create, let post?):
                LocalID.remember(change.postID, as: post.id, in: &update)
                update.insert(post, in: key, isNew: true, isOwn: true) { CacheUpdate.isOlder($1, $0) }
            case (_, let post?): update.put(post)
            case (_, nil): update.remove(Post.self, change.postID)
            }
        }
        return operation
    }

    private static func show(_ change: Change, in changes: inout Outbox.LocalChanges) {
        let item = Post.key(change.postID)
        switch change.kind {
        case .create:
            changes.create(
                Post(
                    id: change.postID,
                    authorID: change.authorID,
                    text: change.text,
                    createdAt: change.writtenAt,
                    version: 0,
                    updatedAt: change.writtenAt
                )
            )
            changes.edit(key) { if !$0.contains(item) { $0.insert(item, at: 0) } }
        case .edit:
            changes.modify(Post.self, change.postID) { post in
                post.text = change.text
                post.editedAt = change.writtenAt
            }
        case .delete:
            changes.remove(Post.self, change.postID)
            changes.edit(key) { $0.removeAll { $0 == item } }
        }
    }

    private static func send(
        _ attempt: Outbox.Attempt<Change>,
        _ source: HTTPSource,
        _ cache: LarderCache?
    ) async throws(LarderError) -> Outbox.Outcome<Post?> {
        let change = attempt.input
        if change.kind == .create {
            let fields: Fields = [.idempotencyKey: attempt.idempotencyKey]
            return .accepted(
                try await source.send(.post, "/v1/posts", Text(text: change.text), fields, as: Post.self).value
            )
        }
        guard let id = LocalID.serverID(change.postID, in: cache) else {
            return .rejected(LocalID.notCreated(change.postID))
        }
        let path = "/v1/posts/\(HTTPSource.escape(id))"
        guard change.kind == .delete else {
            let fields: Fields = [.ifMatch: "*", .contentType: "application/merge-patch+json"]
            return .accepted(try await source.send(.patch, path, Text(text: change.text), fields, as: Post.self).value)
        }
        do { try await source.send(.delete, path) } catch {
            // It is deleted already, perhaps by an attempt whose reply was lost.
            guard error.saysDeleted else { throw error }
        }
        return .accepted(nil)
    }
}
