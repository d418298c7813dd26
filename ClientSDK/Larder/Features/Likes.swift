import LarderCoding
import LarderHTTP
public import LarderModels

/// Hearts: shown at once, durable when the call returns, sent in batches when the network allows, undone where they are refused.
public struct Likes: Sendable {
    /// A tap on a heart.
    public struct Tap: Codable, Sendable, Hashable {
        /// The post.
        public var postID: String
        /// Whether it is liked now.
        public var isLike: Bool
    }

    private let cache: LarderCache
    /// The operation that is in the outbox: to edit one that was refused (`Outbox.edit`), or to read it (`OutboxEntry.input`).
    public let operation: WriteBehind<Tap, Post?>

    init(_ cache: LarderCache, _ source: HTTPSource) {
        self.cache = cache
        operation = Self.operation(source)
        cache.outbox.register(operation)
    }

    /// Likes a post, or likes it no more. Before it was sent, a tap replaces an earlier one of the same post.
    ///
    /// - Returns: nil where nothing is left to send: the post is stored as the tap wants it.
    /// - Throws: `.storage` where it could not be kept. Then nothing has changed.
    @discardableResult
    public func set(_ isLike: Bool, _ postID: String) throws(LarderError) -> OperationID? {
        try cache.enqueue(Tap(postID: postID, isLike: isLike), operation)
    }

    private struct Request: Encodable, Sendable {
        struct Item: Encodable, Sendable {
            var postId: String
            var liked: Bool
        }
        var items: [Item]
    }

    private struct Results: Decodable, Sendable {
        struct Item: Decodable, Sendable {
            struct Problem: Decodable, Sendable {
                var type: String?
                var title: String?
            }
            var postId: String
            var status: Int
            var post: Post?
            var problem: Problem?
        }
        var results: [Item]
    }

    private static func operation(_ source: HTTPSource) -> WriteBehind<Tap, Post?> {
        var operation = WriteBehind<Tap, Post?>(
            "like",
            scope: { "like/" + $0.postID },
            changes: { tap, changes in
                changes.modify(Post.self, tap.postID) { post in
                    guard post.likedByMe != tap.isLike else { return }
                    post.likedByMe = tap.isLike
                    post.likeCount += tap.isLike ? 1 : -1
                }
            },
            send: { attempts in
                let items = attempts.map { Request.Item(postId: $0.input.postID, liked: $0.input.isLike) }
                let reply = try await source.send(.post, "/v1/likes", Request(items: items), as: Results.self)
                let results = Dictionary(reply.value.results.map { ($0.postId, $0) }, uniquingKeysWith: { $1 })
                return attempts.map { attempt in
                    guard let result = results[attempt.input.postID] else {
                        return .retry(
                            LarderError(.unexpectedReply, "The reply names no result for \(attempt.input.postID).")
                        )
                    }
                    guard result.status == 200 else {
                        // What fails in passing is sent again, what is refused for good is not.
                        return .failure(
                            LarderError(
                                .refused,
                                result.problem?.title ?? "The post takes no like.",
                                status: result.status,
                                problem: result.problem?.type
                            )
                        )
                    }
                    return .accepted(result.post)
                }
            }
        )
        operation.coalescingKey = { $0.postID }
        operation.coalesce = { old, new in old.isLike == new.isLike ? .replace(new) : .cancelOut }
        // Every tap waits for it, and Foundation's encoder takes as long as the rest.
        operation.codec = Codec(
            encode: { tap in
                var json = JSONWriter()
                json.beginObject()
                json.key("postID")
                json.string(tap.postID)
                json.key("isLike")
                json.bool(tap.isLike)
                json.endObject()
                return json.bytes
            },
            decode: Codec<Tap>.json.decode
        )
        operation.batchMaximum = 100
        operation.batchUsual = 50
        operation.acknowledge = { _, post, update in if let post { update.put(post) } }
        return operation
    }
}
