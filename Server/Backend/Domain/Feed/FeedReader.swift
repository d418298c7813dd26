import LarderSQLite

/// Reads everybody's posts, newest first. Confined like its database.
final class FeedReader {
    private let database: Database
    private let chunks: FeedChunkTable
    private let bounds: Statement
    private let older: Statement
    private let likedBelow: Statement
    /// The lowest and the highest number in use, while it is known. Never looked at inside a transaction, where the table
    /// shows what may yet be undone, and forgotten before a post comes or goes: what was rolled back is only read once more.
    private var knownExtent: ClosedRange<Int64>?

    init(_ database: Database, _ chunks: FeedChunkTable) throws(SQLiteError) {
        self.database = database
        self.chunks = chunks
        bounds = try database.prepare("SELECT (SELECT min(id) FROM posts), (SELECT max(id) FROM posts)")
        older = try database.prepare(
            "SELECT id, head, likes, version, updated, author FROM posts WHERE id < ? ORDER BY id DESC LIMIT ?"
        )
        likedBelow = try database.prepare("SELECT post FROM likes WHERE user = ? AND post < ? ORDER BY post DESC")
    }

    /// A post is about to come or to go.
    func extentWillChange() { knownExtent = nil }

    /// The lowest and highest numbers in use.
    func extent() throws(SQLiteError) -> ClosedRange<Int64>? {
        let isSettled = !database.isInTransaction
        if isSettled, let knownExtent { return knownExtent }
        defer { bounds.reset() }
        guard try bounds.step(), !bounds.isNull(0) else { return nil }
        let extent = bounds.int64(0)...bounds.int64(1)
        if isSettled { knownExtent = extent }
        return extent
    }

    /// Appends up to `limit` posts below a number, as `viewer` sees them, separated by commas.
    func append(
        below start: Int64,
        viewer: Int64,
        limit: Int,
        wantsAuthors: Bool,
        to bytes: inout [UInt8]
    ) throws(SQLiteError) -> PostPage {
        // Somebody who has not signed in likes nothing.
        let likes = try viewer == 0 ? nil : LikeWalk(likedBelow, viewer: viewer, below: start)
        defer { if viewer != 0 { likedBelow.reset() } }
        var page = FeedPage(below: start, limit: limit, wantsAuthors: wantsAuthors, likes: likes, bytes: &bytes)
        if database.isInTransaction {
            // What is undone there to show the past is undone in the posts alone.
            try readRows(limit, into: &page)
        } else {
            try chunks.read(into: &page)
        }
        return page.finish(&bytes)
    }

    private func readRows(_ limit: Int, into page: inout FeedPage) throws(SQLiteError) {
        defer { older.reset() }
        try older.bind(page.end, at: 1)
        try older.bind(Int64(limit), at: 2)
        while try older.step() { try page.add(older) }
    }
}
