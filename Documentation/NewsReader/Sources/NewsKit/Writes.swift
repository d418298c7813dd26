import Larder

extension NewsClient {
    /// Sets or removes a bookmark.
    struct BookmarkChange: Codable, Sendable {
        var article: Int
        var isSet: Bool
    }

    /// A bookmark is shown at once, survives a kill, and is sent when the network allows.
    static func bookmarking(_ source: HTTPSource) -> WriteBehind<BookmarkChange, Void> {
        var operation = WriteBehind<BookmarkChange, Void>(
            "bookmark",
            scope: { "article/\($0.article)" },
            changes: { change, local in
                if change.isSet { local.create(Bookmark(id: change.article)) }
                local.edit(bookmarksKey) { edit(&$0, change) }
            },
            send: { attempts in
                for attempt in attempts {
                    let method: Method = attempt.input.isSet ? .put : .delete
                    try await source.send(method, "/articles/\(attempt.input.article)/bookmark")
                }
                return attempts.map { _ in .accepted(()) }
            }
        )
        // Only the last of several taps is sent.
        operation.coalescingKey = { "\($0.article)" }
        operation.coalesce = { _, new in .replace(new) }
        operation.acknowledge = { change, _, update in
            if change.isSet { update.put(Bookmark(id: change.article)) }
            update.edit(bookmarksKey) { edit(&$0, change) }
        }
        return operation
    }

    /// Puts an article's bookmark in its place, in the order of articles, or takes it out.
    private static func edit(_ keys: inout [EntityKey], _ change: BookmarkChange) {
        let key = Bookmark.key(change.article)
        keys.removeAll { $0 == key }
        guard change.isSet else { return }
        let place = keys.firstIndex { Int($0.id).map { $0 > change.article } ?? false } ?? keys.endIndex
        keys.insert(key, at: place)
    }

    /// The text of a comment.
    struct CommentDraft: Codable, Sendable {
        var article: Int
        var text: String
    }

    /// A comment is sent under an idempotency key that is stored before: however often it is sent, there is one comment.
    static func commenting(_ source: HTTPSource) -> WriteBehind<CommentDraft, Comment> {
        WriteBehind(
            "comment",
            scope: { "comments/\($0.article)" },
            changes: { _, _ in },
            send: { attempts in
                var outcomes: [Outbox.Outcome<Comment>] = []
                for attempt in attempts {
                    let reply = try await source.send(
                        .post,
                        "/articles/\(attempt.input.article)/comments",
                        ["text": attempt.input.text],
                        ["Idempotency-Key": attempt.idempotencyKey],
                        as: Comment.self
                    )
                    outcomes.append(.accepted(reply.value))
                }
                return outcomes
            }
        )
    }
}
