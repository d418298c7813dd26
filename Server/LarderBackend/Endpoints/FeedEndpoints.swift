import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime

/// Posts and the feed.
enum FeedEndpoints {
    static let routes: [Route] = [
        Route(.get, "/v1/feed", .optional) { call throws(Problem) in try page(call, author: nil) },
        Route(.get, "/v1/feed/pages", .optional, offsetPage),
        Route(.get, "/v1/posts", .optional) { call throws(Problem) in
            let pageParameters: [StaticString] = ["author", "after", "before", "limit", "include", "fields"]
            if let rows = try call.batch(.post, insteadOf: pageParameters) { return try call.reply(to: rows, .post) }
            var author: Int64?
            if let text = call.query.first("author") {
                guard let id = EntityID(.profile, parsing: text) else {
                    throw call.invalid("author", "must be the identifier of a profile")
                }
                author = id.row
            }
            return try page(call, author: author)
        },
        Route(.post, "/v1/posts", .required, create),
        Route(.get, "/v1/posts/{id}", .optional, read),
        Route(.patch, "/v1/posts/{id}", .required, edit),
        Route(.delete, "/v1/posts/{id}", .required, delete),
    ]

    static let textLength = 1...2_000

    // MARK: Reading

    private static func page(_ call: Call, author: Int64?) throws(Problem) -> Reply? {
        let list: Cursor.List = author == nil ? .feed : .authoredPosts
        let owner = author ?? 0
        let start = try call.pageStart(list, owner: owner)
        let limit = try call.limit()
        let includesProfiles = try include(call)
        let form = try call.itemForm()
        if form == .index, includesProfiles {
            throw call.invalid("fields", "cannot be given together with `include`")
        }
        return try call.reply { store in
            let page = try store.posts.page(
                start,
                author: author,
                viewer: call.viewer,
                limit: limit,
                form: form
            )
            let extent = try store.posts.extent(author: author)
            var body = ListPage.body(
                page.map(\.json),
                ListPage.cursors(start, page.map(\.row), extent: extent, list: list, owner: owner)
            )
            if includesProfiles { try appendProfiles(page.map(\.author), from: store, to: &body) }
            return Representation(body: body, cacheControl: CachePolicy.feed)
        }
    }

    /// The same feed by offset, to demonstrate the flaw of offsets: a post that is created between two requests shifts every
    /// later page by one, so that its first item repeats.
    private static func offsetPage(_ call: Call) throws(Problem) -> Reply? {
        let number = try call.integer("page", in: 1...1_000_000) ?? 1
        let limit = try call.limit()
        return try call.reply { store in
            let posts = try store.posts.page(offset: (number - 1) * limit, viewer: call.viewer, limit: limit)
            let total = try store.posts.total()
            let pages = (total + Int64(limit) - 1) / Int64(limit)
            let next = (number - 1) * limit + posts.count < Int(total) ? "\(number + 1)" : "null"
            var body = Array("{\"items\":[".utf8)
            body.append(items: posts)
            let members = #"],"page":\#(number),"pageCount":\#(pages),"itemCount":\#(total),"nextPage":\#(next)}"#
            body += Array(members.utf8)
            return Representation(body: body, cacheControl: CachePolicy.feed)
        }
    }

    private static func read(_ call: Call) throws(Problem) -> Reply? {
        let row = try call.row(.post)
        let includesProfiles = try include(call)
        let modification = call.modification
        return try call.reply { store in
            var body: [UInt8] = []
            guard let post = try store.posts.append(row, viewer: call.viewer, to: &body) else {
                throw ProblemType.notFound("There is no post post_\(row).")
            }
            if includesProfiles { try appendProfiles([post.author], from: store, to: &body) }
            return Representation(
                body: body,
                cacheControl: CachePolicy.feed,
                modified: includesProfiles ? nil : modification(post.version.updated)
            )
        }
    }

    /// Whether `include=profiles` requests the authors.
    private static func include(_ call: Call) throws(Problem) -> Bool {
        switch call.query.first("include") {
        case nil: return false
        case "profiles": return true
        default: throw call.invalid("include", "can only be `profiles`")
        }
    }

    /// Replaces the closing brace of an object by a member with the authors, without duplicates.
    private static func appendProfiles(_ authors: [Int64], from store: Store, to body: inout [UInt8]) throws {
        if body.last == UInt8(ascii: "}") { body.removeLast() }
        body.append(",\"profiles\":[")
        var seen: [Int64] = []
        for author in authors where !seen.contains(author) {
            if !seen.isEmpty { body.append(UInt8(ascii: ",")) }
            seen.append(author)
            _ = try store.profiles.append(author, to: &body)
        }
        body.append("]}")
    }

    // MARK: Writing

    private static func create(_ call: Call) throws(Problem) -> Reply? {
        var reader = BodyReader(try call.jsonObject())
        reader.require("text")
        let text = reader.string("text", length: textLength)
        let image = try ImageEndpoints.reference(&reader, call)
        try reader.check()
        guard let text else { preconditionFailure("check() throws when a required member is missing.") }
        let author = call.viewer
        return try Idempotency.run(call, isKeyRequired: false) { store, commit in
            let row = try add(text: text, image: image, author: author, to: store, &commit)
            return .created(at: "/v1/posts/post_\(row)", try store.json(.post, row, viewer: author))
        }
    }

    /// Adds a post in the running transaction; returns its row.
    static func add(
        text: String,
        image: JSONValue?,
        author: Int64,
        to store: Store,
        _ commit: inout Commit
    ) throws -> Int64 {
        let row = try store.posts.nextRow()
        try store.posts.add(PostRow(row, author: author, text: text, image: image, created: commit.now))
        try commit.record(.post, row, audience: .everyone, version: 1, in: store)
        return row
    }

    private static func edit(_ call: Call) throws(Problem) -> Reply? {
        let row = try call.row(.post)
        let patch = try call.jsonObject(orMediaType: "application/merge-patch+json")
        var reading = BodyReader(patch)
        let image = patch["image"] == nil ? nil : try ImageEndpoints.reference(&reading, call) ?? .null
        let representation = try call.write { store, commit in
            var post = try own(row, of: call, in: store)
            var reader = reading
            if patch["text"] != nil {
                reader.require("text")
                if let text = reader.string("text", length: textLength) { post.members["text"] = .string(text) }
            }
            if let image { post.members["image"] = image }
            try reader.check()
            post.members["editedAt"] = .string(commit.now.rfc3339())
            post.version += 1
            post.updated = commit.now
            try store.posts.replace(post)
            try commit.record(.post, row, audience: .everyone, version: post.version, in: store)
            return try call.representation(of: .post, row, CachePolicy.feed, in: store)
        }
        return representation.full
    }

    private static func delete(_ call: Call) throws(Problem) -> Reply? {
        let row = try call.row(.post)
        try call.write { store, commit in
            let post = try own(row, of: call, in: store, isConditionRequired: false)
            try store.posts.delete(row)
            try commit.record(
                .post,
                row,
                deleted: true,
                audience: .everyone,
                version: post.version + 1,
                in: store
            )
        }
        return .noContent
    }

    /// The caller's own post, after its conditions were checked.
    private static func own(
        _ row: Int64,
        of call: Call,
        in store: Store,
        isConditionRequired: Bool = true
    ) throws -> PostRow {
        guard let post = try store.posts.find(row) else {
            throw ProblemType.notFound("There is no post post_\(row).")
        }
        guard post.author == call.viewer else {
            throw ProblemType.forbidden("Post post_\(row) belongs to another user.")
        }
        try call.checkConditions(
            on: try call.representation(of: .post, row, CachePolicy.feed, in: store),
            version: post.version,
            isRequired: isConditionRequired
        )
        return post
    }
}
