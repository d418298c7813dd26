public import Larder
import LarderModels

extension Feed {
    /// Creates a post: it is durable and shown when this returns, and is sent when the network allows it.
    ///
    /// - Returns: the post's local ID, which `edit` and `delete` take also after the server has given it another one.
    /// - Throws: `.invalidArgument` for an empty text and for more than 2,000 Unicode scalars; `.unauthorized` if no user is signed in;
    ///   `.storage` or `.outboxFull` if it could not be stored.
    @discardableResult
    public func create(_ text: String) throws(LarderError) -> String {
        let change = try change(.create, nil, text)
        try client.cache.enqueue(change, operation)
        return change.id
    }

    /// Replaces the text of a post of the signed-in user. A post that was not sent yet is sent with the new text.
    ///
    /// An edit is sent whatever the current version is: of two edits from two devices the one that arrives last wins.
    ///
    /// - Returns: the queued operation.
    /// - Throws: as `create`.
    @discardableResult
    public func edit(_ postID: String, to text: String) throws(LarderError) -> OperationID? {
        try client.cache.enqueue(try change(.edit, postID, text), operation)
    }

    /// Deletes a post of the signed-in user. If its creation was not sent yet, nothing is sent.
    ///
    /// - Returns: the queued operation; nil if nothing needs to be sent.
    /// - Throws: as `create`.
    @discardableResult
    public func delete(_ postID: String) throws(LarderError) -> OperationID? {
        try client.cache.enqueue(try change(.delete, postID, ""), operation)
    }

    private func change(_ kind: TextChange.Kind, _ id: String?, _ text: String) throws(LarderError) -> TextChange {
        try TextChange(kind, id, text, maximum: 2_000, client)
    }

    static func operation(_ source: HTTPSource, _ cache: LarderCache) -> WriteBehind<TextChange, Post?> {
        TextChange.operation(
            "post",
            // One scope for all posts: an edit must not overtake the creation, and posts appear in the order of writing.
            scope: { _ in "posts" },
            list: { _ in key },
            new: { change in
                Post(
                    id: change.id,
                    authorID: change.authorID,
                    text: change.text,
                    createdAt: change.writtenAt,
                    version: 0,
                    updatedAt: change.writtenAt
                )
            },
            edit: { change, post in
                post.text = change.text
                post.editedAt = change.writtenAt
            },
            cache
        ) { change, key throws(LarderError) -> Post? in
            let (path, body) = ("/v1/posts/\(HTTPSource.escape(change.id))", TextChange.Body(text: change.text))
            switch change.kind {
            case .create:
                return try await source.send(.post, "/v1/posts", body, [.idempotencyKey: key], as: Post.self).value
            case .edit:
                let fields: Fields = [.ifMatch: "*", .contentType: "application/merge-patch+json"]
                return try await source.send(.patch, path, body, fields, as: Post.self).value
            case .delete:
                return try await LarderError.unlessDeleted { () async throws(LarderError) in
                    try await source.send(.delete, path)
                    return nil
                }
            }
        }
    }
}
