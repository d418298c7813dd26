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
        guard try apply(isLiked, post: row, user: call.viewer, in: store, &commit) else {
            return ProblemType.notFound("There is no post post_\(row).").reply
        }
        return .existing(try store.json(.post, row, viewer: call.viewer))
    }

    /// Sets or clears one like in the running transaction.
    ///
    /// - Returns: false when there is no such post.
    static func apply(
        _ isLiked: Bool,
        post: Int64,
        user: Int64,
        in store: Store,
        _ commit: inout Commit
    ) throws -> Bool {
        let isChanged =
            isLiked
            ? try store.likes.set(user: user, post: post, at: commit.now)
            : try store.likes.clear(user: user, post: post)
        guard isChanged, let version = try store.posts.addLikes(isLiked ? 1 : -1, to: post, at: commit.now) else {
            return try store.posts.contains(post)
        }
        try commit.record(.post, post, audience: .everyone, version: version, in: store)
        return true
    }

    /// One item of a batch.
    private struct Item {
        let post: Int64
        let isLiked: Bool
        let key: String?

        init?(_ reader: inout BodyReader) {
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
        var reader = BodyReader(try call.jsonObject())
        var wanted: [Item] = []
        reader.require("items")
        for var item in reader.objects("items", count: batchCount) ?? [] {
            if let read = Item(&item) { wanted.append(read) }
            item.finish()
        }
        try reader.check()
        let body = try call.write { store, commit in
            var body: [UInt8] = []
            body.append("{\"results\":[")
            for (index, item) in wanted.enumerated() {
                if index > 0 { body.append(UInt8(ascii: ",")) }
                body.append("{\"postId\":")
                body.append(identifier: EntityID(.post, item.post))
                let reply = try result(of: item, for: call, in: store, &commit)
                body.append(",\"status\":")
                body.append(decimal: Int64(reply.status.code))
                body.append(reply.status == .ok ? ",\"post\":" : ",\"problem\":")
                body.append(contentsOf: reply.bytes)
                body.append(UInt8(ascii: "}"))
            }
            body.append("]}")
            return body
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
        let fingerprint = item.fingerprint
        do {
            if let key = item.key,
                let first = try Idempotency.first(key, fingerprint, for: call, in: store, now: commit.now)
            {
                return first
            }
            let reply = try set(item.isLiked, item.post, for: call, in: store, &commit)
            if let key = item.key {
                try Idempotency.keep(reply, key, fingerprint, for: call, in: store, now: commit.now)
            }
            return reply
        } catch let problem as Problem {
            return problem.reply
        }
    }
}
