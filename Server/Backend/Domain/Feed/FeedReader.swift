import LarderSQLite

/// What a page of posts holds besides the JSON that was appended.
struct PostPage {
    var rows: [Int64] = []
    var authors: [Int64] = []
    /// Whether there is more in the direction of reading.
    var hasMore = false
    /// What tells the items from any other page's, shorter than they are; empty where nobody has made it.
    var digest: [UInt8] = []
}

/// Reads everybody's posts, newest first: from the shelf as far as it goes, and from there on out of the table. Confined like
/// its database.
final class FeedReader {
    private let database: Database
    private let bounds: Statement
    private let older: Statement
    private let one: Statement
    private let likedBelow: Statement
    /// Must be told of every change before the table is.
    var shelf = PostShelf()

    init(_ database: Database) throws(SQLiteError) {
        self.database = database
        bounds = try database.prepare("SELECT (SELECT min(id) FROM posts), (SELECT max(id) FROM posts)")
        older = try database.prepare(
            "SELECT id, head, likes, version, updated, author FROM posts WHERE id < ? ORDER BY id DESC LIMIT ?"
        )
        one = try database.prepare("SELECT id, head, likes, version, updated, author FROM posts WHERE id = ?")
        likedBelow = try database.prepare("SELECT post FROM likes WHERE user = ? AND post < ? ORDER BY post DESC")
    }

    /// Whether what the table shows is there to stay.
    private var usesShelf: Bool { !database.isInTransaction }

    /// The lowest and highest numbers in use.
    func extent() throws(SQLiteError) -> ClosedRange<Int64>? {
        let usesShelf = usesShelf
        if usesShelf, let extent = shelf.extent { return extent }
        defer { bounds.reset() }
        guard try bounds.step(), !bounds.isNull(0) else { return nil }
        let extent = bounds.int64(0)...bounds.int64(1)
        if usesShelf { shelf.extent = extent }
        return extent
    }

    /// Appends up to `limit` posts below a number, as `viewer` sees them, separated by commas.
    func append(
        below start: Int64,
        viewer: Int64,
        limit: Int,
        to bytes: inout [UInt8]
    ) throws(SQLiteError) -> PostPage {
        var posts: [ShelvedPost] = []
        posts.reserveCapacity(limit)
        var page = PostPage()
        page.hasMore = try collect(below: start, limit, into: &posts)
        page.rows.reserveCapacity(limit)
        page.authors.reserveCapacity(limit)
        page.digest.reserveCapacity(limit * 16 + 160)
        // Somebody who has not signed in likes nothing.
        var likes = try viewer == 0 ? nil : LikeWalk(likedBelow, viewer: viewer, below: start)
        defer { if viewer != 0 { likedBelow.reset() } }
        for post in posts {
            let isLiked = try likes?.includes(post.row) ?? false
            page.rows.append(post.row)
            page.authors.append(post.author)
            post.append(isLiked: isLiked, to: &bytes)
            post.appendDigest(isLiked: isLiked, to: &page.digest)
        }
        // The comma behind the last.
        if !posts.isEmpty { bytes.removeLast() }
        return page
    }

    /// Gathers up to `limit` posts below a number; returns whether there are more.
    private func collect(
        below start: Int64,
        _ limit: Int,
        into posts: inout [ShelvedPost]
    ) throws(SQLiteError) -> Bool {
        guard usesShelf else {
            // Neither looked at nor filled: what the table shows may yet be undone.
            var unused = PostShelf()
            return try readOn(below: start, limit, into: &posts, &unused) ?? false
        }
        if start == .max { _ = try extent() }
        while true {
            switch shelf.take(below: posts.last?.row ?? start, limit, into: &posts) {
            case .last: return false
            case .more: return true
            case .changed(let row):
                if let post = try read(row) {
                    shelf.put(post)
                    posts.append(post)
                    continue
                }
            case .unknown: break
            }
            if let hasMore = try readOn(below: posts.last?.row ?? start, limit, into: &posts, &shelf) { return hasMore }
        }
    }

    /// Reads posts out of the table until there are enough, or until the shelf knows how to go on: then nil.
    private func readOn(
        below start: Int64,
        _ limit: Int,
        into posts: inout [ShelvedPost],
        _ shelf: inout PostShelf
    ) throws(SQLiteError) -> Bool? {
        defer { older.reset() }
        try older.bind(start, at: 1)
        // One more than asked for tells whether there is another page.
        try older.bind(Int64(limit - posts.count + 1), at: 2)
        var below = start
        while try older.step() {
            let row = older.int64(0)
            shelf.link(below, to: row)
            if posts.count == limit { return true }
            let post = shelf.post(row) ?? ShelvedPost(older)
            shelf.put(post)
            posts.append(post)
            if shelf.knowsOrder(behind: row) { return nil }
            below = row
        }
        shelf.link(below, to: 0)
        return false
    }

    private func read(_ row: Int64) throws(SQLiteError) -> ShelvedPost? {
        defer { one.reset() }
        try one.bind(row, at: 1)
        return try one.step() ? ShelvedPost(one) : nil
    }
}
