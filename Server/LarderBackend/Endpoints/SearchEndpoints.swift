import LarderCoding
import LarderEngine
import LarderHTTP

/// Search in the texts of posts and in names, handles, places and descriptions of people.
enum SearchEndpoints {
    static let routes: [Route] = [Route(.get, "/v1/search", .optional, search)]

    /// The entities that one request looks at. A page may then have fewer items than its limit, also none, and a cursor of the rest.
    static let scanMaximum = 5_000

    private static func search(_ call: Call) throws(Problem) -> Reply? {
        let words = (call.query.first("q") ?? "").lowercased().split(separator: " ").map(String.init)
        guard !words.isEmpty, words.reduce(0, { $0 + $1.unicodeScalars.count }) <= 100 else {
            throw call.invalid("q", "must have 1 to 100 characters, not counting spaces")
        }
        let isOfPeople: Bool
        switch call.query.first("kind") {
        case nil, "posts": isOfPeople = false
        case "people": isOfPeople = true
        default: throw call.invalid("kind", "must be `posts` or `people`")
        }
        let list: Cursor.List = isOfPeople ? .foundPeople : .foundPosts
        let owner = Int64(ContentHash.hash64(Array(words.joined(separator: " ").utf8).span) >> 1)
        let (start, limit, viewer) = (try call.after(list, owner: owner), try call.limit(), call.viewer)
        return try call.reply { store in
            let kind: EntityKind = isOfPeople ? .profile : .post
            let found = try store.entities.search(words, in: kind, from: start, limit: limit, scanning: scanMaximum)
            let items = try found.rows.map { try store.json(kind, $0, viewer: viewer) }
            let next = found.rest.map { Cursor(list, owner: owner, row: $0) }
            return ListPage.representation(items, (next, nil), cacheControl: CachePolicy.feed)
        }
    }
}
