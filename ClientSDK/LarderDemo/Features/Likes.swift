public import Larder
public import LarderModels

/// Likes of posts.
///
/// Optimistic: a like is shown at once, stored on disk when the call returns, sent in batches, and rolled back if the server rejects
/// it.
public struct Likes: Sendable {
    /// A like or unlike of a post.
    public struct Tap: Codable, Sendable, Hashable {
        public var postID: String
        /// True to like, false to unlike.
        public var isLike: Bool
    }

    private let cache: LarderCache
    /// The operation of likes, to edit a rejected one (`Outbox.edit`) or to decode a queued one (`Outbox.Entry.input`).
    public let operation: WriteBehind<Tap, Post?>

    init(_ client: APIClient) {
        cache = client.cache
        operation = Self.operation(client.source)
    }

    /// Likes or unlikes a post. An unsent tap on the same post is replaced.
    ///
    /// - Returns: the queued operation.
    /// - Throws: `.storage` if it could not be stored. Then nothing has changed.
    @discardableResult
    public func set(_ isLike: Bool, _ postID: String) throws(LarderError) -> OperationID? {
        try cache.enqueue(Tap(postID: postID, isLike: isLike), operation)
    }

    private struct Request: Encodable, Sendable {
        struct Item: Encodable, Sendable {
            var postID: String
            var liked: Bool
            var idempotencyKey: String

            private enum CodingKeys: String, CodingKey {
                case postID = "postId"
                case liked, idempotencyKey
            }
        }
        var items: [Item]
    }

    private struct Results: Decodable, Sendable {
        struct Item: Decodable, Sendable {
            struct Problem: Decodable, Sendable {
                var type: String?
                var title: String?
            }
            var postID: String
            var status: Int
            var post: Post?
            var problem: Problem?

            private enum CodingKeys: String, CodingKey {
                case postID = "postId"
                case status, post, problem
            }
        }
        var results: [Item]
    }

    static func operation(_ source: HTTPSource) -> WriteBehind<Tap, Post?> {
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
                // Each tap has its own key: an attempt that the server carries out late does not undo a later tap.
                let items = attempts.map {
                    Request.Item(postID: $0.input.postID, liked: $0.input.isLike, idempotencyKey: $0.idempotencyKey)
                }
                let reply = try await source.send(.post, "/v1/likes", Request(items: items), as: Results.self)
                let results = Dictionary(reply.value.results.map { ($0.postID, $0) }, uniquingKeysWith: { $1 })
                return attempts.map { attempt in
                    guard let result = results[attempt.input.postID] else {
                        return .retry(
                            LarderError(.unexpectedReply, "The reply names no result for \(attempt.input.postID).")
                        )
                    }
                    guard result.status == 200 else {
                        // The outbox retries transient statuses and rejects the others.
                        return .failure(
                            LarderError(
                                .rejected,
                                result.problem?.title
                                    ?? "The server has rejected the like with the status \(result.status).",
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
        operation.coalesce = { _, new in .replace(new) }
        operation.batchMaximum = 100
        operation.batchUsual = 50
        operation.acknowledge = { _, post, update in if let post { update.put(post) } }
        return operation
    }
}
