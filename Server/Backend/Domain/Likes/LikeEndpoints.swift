import LarderCoding
import LarderEngine
import LarderHTTP

/// Likes: a state that is set or cleared, so that sending it twice is sending it once.
enum LikeEndpoints {
    static let routes: [Route] = [
        Route(.put, "/v1/posts/{id}/like", .required) { call throws(Problem) in try set(&call, isLiked: true) },
        Route(.delete, "/v1/posts/{id}/like", .required) { call throws(Problem) in try set(&call, isLiked: false) },
        Route(.post, "/v1/likes", .required, batch),
    ]

    static let batchCount = 1...100

    private static func set(_ call: inout Call, isLiked: Bool) throws(Problem) -> Answer {
        let row = try call.row(.post)
        let viewer = call.viewer
        let body = try call.write { store, commit in
            guard try apply(isLiked, post: row, user: viewer, in: store, &commit) else {
                throw ProblemType.notFound("There is no post post_\(row) (any more).")
            }
            var body: [UInt8] = []
            _ = try store.posts.append(row, viewer: viewer, to: &body)
            return body
        }
        return .json(.ok, body, cacheControl: CachePolicy.noStore)
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
        guard try store.posts.contains(post) else { return false }
        let changed =
            isLiked
            ? try store.likes.set(user: user, post: post, at: commit.now, in: store.database)
            : try store.likes.clear(user: user, post: post, in: store.database)
        if changed, let version = try store.posts.addLikes(isLiked ? 1 : -1, to: post, at: commit.now) {
            try commit.record(.post, post, audience: .everyone, version: version, in: store)
        }
        return true
    }

    /// Many likes in one request. Each item has its own result, in order: one post that is gone does not undo the others.
    private static func batch(_ call: inout Call) throws(Problem) -> Answer {
        var reader = BodyReader(try call.jsonObject())
        var wanted: [(post: Int64, isLiked: Bool)] = []
        if let items = reader.array("items", count: batchCount) {
            for (index, item) in items.enumerated() {
                guard case .object(let object) = item else {
                    reader.add([Problem.FieldError(pointer: "/items/\(index)", detail: "must be an object")])
                    continue
                }
                var itemReader = BodyReader(object, at: "/items/\(index)")
                let post = itemReader.identifier("postId", .post)
                let isLiked = itemReader.bool("liked")
                reader.add(itemReader.allErrors())
                if let post, let isLiked { wanted.append((post, isLiked)) }
            }
        }
        try reader.finish()
        let (viewer, items) = (call.viewer, wanted)
        let body = try call.write { store, commit in
            var body: [UInt8] = []
            body.append("{\"results\":[")
            for (index, item) in items.enumerated() {
                if index > 0 { body.append(UInt8(ascii: ",")) }
                body.append("{\"postId\":")
                body.append(identifier: EntityID(.post, item.post))
                if try apply(item.isLiked, post: item.post, user: viewer, in: store, &commit) {
                    body.append(",\"status\":200,\"post\":")
                    _ = try store.posts.append(item.post, viewer: viewer, to: &body)
                } else {
                    let problem = ProblemType.notFound("There is no post post_\(item.post) (any more).")
                    body.append(",\"status\":404,\"problem\":")
                    body.append(contentsOf: problem.encoded())
                }
                body.append(UInt8(ascii: "}"))
            }
            body.append("]}")
            return body
        }
        return .json(.ok, body, cacheControl: CachePolicy.noStore)
    }
}
