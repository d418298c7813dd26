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
            let pageParameters = ["author", "after", "before", "limit", "include", "fields"]
            if let reply = try call.batch(.post, insteadOf: pageParameters) { return reply }
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
        let posts: EntityList = author.map { .of(.post, $0) } ?? .all(.post)
        let start = try call.pageStart(list, owner: owner)
        let limit = try call.limit()
        let includesProfiles = try include(call)
        let form = try call.itemForm()
        if form == .index, includesProfiles {
            throw call.invalid("fields", "cannot be given together with `include`")
        }
        return try call.reply { store in
            let page = try store.entities.page(start, of: posts, viewer: call.viewer, limit: limit, form: form)
            var body = try ListPage.body(page, start, of: posts, (list, owner), in: store)
            if includesProfiles { try appendProfiles(page.map(\.list), from: store, to: &body) }
            return Representation(body: body, cacheControl: CachePolicy.feed)
        }
    }

    /// The same feed by offset, to demonstrate the flaw of offsets: a post that is created between two requests shifts every
    /// later page by one, so that its first item repeats.
    private static func offsetPage(_ call: Call) throws(Problem) -> Reply? {
        let number = try call.integer("page", in: 1...1_000_000) ?? 1
        let limit = try call.limit()
        return try call.reply { store in
            let read = try store.entities.page(.newest, of: .all(.post), viewer: call.viewer, limit: number * limit)
            let posts = read.dropFirst((number - 1) * limit).map(\.json)
            let total = try store.entities.count(.post)
            let pages = (total + Int64(limit) - 1) / Int64(limit)
            let next = (number - 1) * limit + posts.count < Int(total) ? "\(number + 1)" : "null"
            let members = #","page":\#(number),"pageCount":\#(pages),"itemCount":\#(total),"nextPage":\#(next)"#
            return Representation(body: [UInt8](items: posts, members), cacheControl: CachePolicy.feed)
        }
    }

    private static func read(_ call: Call) throws(Problem) -> Reply? {
        let id = EntityID(.post, try call.row(.post))
        guard try include(call) else { return try call.read(id) }
        return try call.reply { store in
            let post = try call.visible(id, in: store)
            var body = try store.json(.post, id.row, viewer: call.viewer)
            try appendProfiles([post.list], from: store, to: &body)
            return Representation(body: body, cacheControl: CachePolicy.feed)
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
        var seen: Set<Int64> = []
        let profiles = try authors.filter { seen.insert($0).inserted }.map { try store.json(.profile, $0) }
        body.removeLast()
        body += Array(",\"profiles\":".utf8) + [UInt8](list: profiles) + [UInt8(ascii: "}")]
    }

    // MARK: Writing

    private static func create(_ call: Call) throws(Problem) -> Reply? {
        let reader = BodyReader(try call.jsonObject())
        reader.require("text")
        let text = reader.string("text", length: textLength) ?? ""
        let image = try ImageEndpoints.reference(reader, call)
        try reader.check()
        let author = call.viewer
        return try Idempotency.run(call, isKeyRequired: false) { store, commit in
            let row = try store.entities.next(.post).row
            try commit.add(.post(row, author: author, text: text, image: image, created: commit.now), to: store)
            return .written(try store.json(.post, row, viewer: author), createdAt: "/v1/posts/post_\(row)")
        }
    }

    private static func edit(_ call: Call) throws(Problem) -> Reply? {
        let id = EntityID(.post, try call.row(.post))
        let patch = try call.jsonObject(orMediaType: "application/merge-patch+json")
        let reader = BodyReader(patch)
        let image = patch["image"] == nil ? nil : try ImageEndpoints.reference(reader, call) ?? .null
        return try call.edit(id) { post, _, commit in
            if let text = reader.patched("text", length: textLength) { post.members["text"] = .string(text) }
            if let image { post.members["image"] = image }
            try reader.check()
            post.members["editedAt"] = commit.now.json
        }
    }

    private static func delete(_ call: Call) throws(Problem) -> Reply? {
        try call.delete(.post) { post, store, _ in try store.likes.clear(post: post.id.row) }
    }
}
