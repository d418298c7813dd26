import LarderCoding
import LarderEngine
import LarderHTTP

/// Likes: a state that is set or cleared, so that repeated requests have no further effect.
enum LikeEndpoints {
    static let routes: [Route] = [
        Route(.put, "/v1/posts/{id}/like", .required) { call throws(Problem) in try set(call, isLiked: true) },
        Route(.delete, "/v1/posts/{id}/like", .required) { call throws(Problem) in try set(call, isLiked: false) },
        Route(.post, "/v1/likes", .required, batch),
    ]

    static let batchCount = 1...100

    private static func set(_ call: Call, isLiked: Bool) throws(Problem) -> Reply? {
        let row = try call.row(.post)
        // With a key a late attempt does not undo a later opposite one.
        return try Idempotency.run(call, isKeyRequired: false) { store, commit in
            try set(isLiked, row, for: call, in: store, &commit)
        }
    }

    private static func set(
        _ isLiked: Bool,
        _ row: Int64,
        for call: Call,
        in store: Store,
        _ commit: inout Commit
    ) throws -> Reply {
        guard var post = try store.entities.find(EntityID(.post, row)) else {
            return ProblemType.notFound("There is no post post_\(row).").reply
        }
        if try store.likes.set(isLiked, user: call.viewer, post: row, at: commit.now) {
            let count = (post.members["likeCount"]?.integer ?? 0) + (isLiked ? 1 : -1)
            post.members["likeCount"] = .integer(count)
            try commit.save(post, in: store)
        }
        return .written(try store.json(.post, row, viewer: call.viewer))
    }

    private struct Item {
        let post: Int64
        let isLiked: Bool
        let key: String?

        init?(_ reader: BodyReader) {
            reader.require("postId", "liked")
            let post = reader.identifier("postId", .post)
            isLiked = reader.bool("liked")
            key = reader.string("idempotencyKey", length: Idempotency.keyLength)
            if let key, !Idempotency.isKey(key) {
                reader.fail("idempotencyKey", "must have printable ASCII characters only")
            }
            guard let post else { return nil }
            self.post = post
        }

        /// What a repeated item must have in common with the first one.
        var fingerprint: [UInt8] { Array("\(isLiked ? "+" : "-")\(post)".utf8) }
    }

    /// Many likes in one request. Each item has its own key and its own result, in order; a missing post does not affect the others.
    private static func batch(_ call: Call) throws(Problem) -> Reply? {
        let reader = BodyReader(try call.jsonObject())
        reader.require("items")
        let wanted = reader.objects("items", count: batchCount)?.compactMap(Item.init) ?? []
        try reader.check()
        let body = try call.write { store, commit in
            var results: [[UInt8]] = []
            for item in wanted {
                let reply = try result(of: item, for: call, in: store, &commit)
                let (id, name) = (EntityID(.post, item.post).text, reply.status == .ok ? "post" : "problem")
                let start = #"{"postId":"\#(id)","status":\#(reply.status.code),"\#(name)":"#
                results.append(Array(start.utf8) + reply.bytes + [UInt8(ascii: "}")])
            }
            return [UInt8](items: results, as: "results")
        }
        return .json(.ok, body)
    }

    /// Carries out an item, or replays its first result: the reply that the request for this item alone would have.
    private static func result(
        of item: Item,
        for call: Call,
        in store: Store,
        _ commit: inout Commit
    ) throws -> Reply {
        do {
            guard let key = item.key else { return try set(item.isLiked, item.post, for: call, in: store, &commit) }
            let reply = try Idempotency.once(key, item.fingerprint, for: call, in: store, &commit) { store, commit in
                try set(item.isLiked, item.post, for: call, in: store, &commit)
            }
            // A like always has a reply.
            return reply ?? .noContent
        } catch let problem as Problem {
            return problem.reply
        }
    }
}
