import LarderCoding
import LarderEngine
import LarderHTTP

/// Likes: a state that is set or cleared, so that repeated requests have no further effect.
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
            var body: [UInt8] = []
            guard try apply(isLiked, post: row, user: viewer, in: store, &commit, showing: &body) else {
                throw ProblemType.notFound("There is no post post_\(row).")
            }
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
        let isChanged =
            isLiked
            ? try store.likes.set(user: user, post: post, at: commit.now, in: store.database)
            : try store.likes.clear(user: user, post: post, in: store.database)
        guard isChanged, let version = try store.posts.addLikes(isLiked ? 1 : -1, to: post, at: commit.now) else {
            return try store.posts.contains(post)
        }
        try commit.record(.post, post, audience: .everyone, version: version, in: store)
        return true
    }

    /// Sets or clears a like as the other `apply` does, and appends the post as the user sees it afterwards.
    private static func apply(
        _ isLiked: Bool,
        post: Int64,
        user: Int64,
        in store: Store,
        _ commit: inout Commit,
        showing body: inout [UInt8]
    ) throws -> Bool {
        guard try apply(isLiked, post: post, user: user, in: store, &commit) else { return false }
        return try store.posts.append(post, viewer: user, to: &body) != nil
    }

    /// Many likes in one request. Each item has its own result, in order; a missing post does not affect the others.
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
                var post: [UInt8] = []
                if try apply(item.isLiked, post: item.post, user: viewer, in: store, &commit, showing: &post) {
                    body.append(",\"status\":200,\"post\":")
                    body.append(contentsOf: post)
                } else {
                    let problem = ProblemType.notFound("There is no post post_\(item.post).")
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
