import LarderSQLite

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
        // Somebody who has not signed in likes nothing.
        let likes = try viewer == 0 ? nil : LikeWalk(likedBelow, viewer: viewer, below: start)
        defer { if viewer != 0 { likedBelow.reset() } }
        var page = FeedPage(below: start, limit: limit, likes: likes, bytes: &bytes)
        let hasMore = try fill(&page)
        return page.finish(hasMore: hasMore, &bytes)
    }

    /// Fills a page; returns whether there are more posts behind it.
    private func fill(_ page: inout FeedPage) throws(SQLiteError) -> Bool {
        guard usesShelf else {
            // Neither looked at nor filled: what the table shows may yet be undone.
            var unused = PostShelf(isOpen: false)
            return try readOn(&page, &unused) ?? false
        }
        if page.end == .max { _ = try extent() }
        while true {
            switch try shelf.take(into: &page) {
            case .last: return false
            case .more: return true
            case .changed(let row):
                if try readAgain(row, &page) { continue }
            case .unknown: break
            }
            if let hasMore = try readOn(&page, &shelf) { return hasMore }
        }
    }

    /// Reads posts out of the table until the page is full, or until the shelf knows how to go on: then nil.
    private func readOn(_ page: inout FeedPage, _ shelf: inout PostShelf) throws(SQLiteError) -> Bool? {
        defer { older.reset() }
        try older.bind(page.end, at: 1)
        // One more than asked for tells whether there is another page.
        try older.bind(Int64(page.room + 1), at: 2)
        while try older.step() {
            let row = older.int64(0)
            shelf.link(page.end, to: row)
            if page.isFull { return true }
            if let post = shelf.post(row) {
                try page.add(post)
            } else if let post = try page.add(older, isWanted: shelf.wants(row)) {
                shelf.put(post)
            }
            if shelf.knowsOrder(behind: row) { return nil }
        }
        shelf.link(page.end, to: 0)
        return false
    }

    /// Reads a post that has changed since it was put on the shelf; false if it is not there any more.
    private func readAgain(_ row: Int64, _ page: inout FeedPage) throws(SQLiteError) -> Bool {
        defer { one.reset() }
        try one.bind(row, at: 1)
        guard try one.step() else { return false }
        if let post = try page.add(one, isWanted: true) { shelf.put(post) }
        return true
    }
}
