import LarderCoding
import LarderSQLite
import LarderTime

struct PostRow {
    let row: Int64
    let author: Int64
    var members: JSONObject
    var version: Int64
    var updated: WallTime
}

/// Posts. Rows are numbered in order of creation, so the feed (newest first) is the table in reverse order.
///
/// A row holds the JSON of its post except for the members that likes and edits change, so that a page is a scan and some
/// copying. Confined like its database.
final class PostTable {
    private let insert: Statement
    private let select: Statement
    private let update: Statement
    private let count: Statement
    private let remove: Statement
    private let one: Statement
    private let feedAfter: Statement
    private let feedBefore: Statement
    private let feedBounds: Statement
    private let authoredAfter: Statement
    private let authoredBefore: Statement
    private let authoredBounds: Statement
    private let offset: Statement
    private let number: Statement
    private let next: Statement
    private let heads: Statement

    init(_ database: Database) throws(SQLiteError) {
        insert = try database.prepare(
            "INSERT INTO posts (id, author, head, likes, version, updated) VALUES (?, ?, ?, ?, ?, ?)"
        )
        select = try database.prepare("SELECT author, head, version, updated FROM posts WHERE id = ?")
        update = try database.prepare("UPDATE posts SET head = ?, version = ?, updated = ? WHERE id = ?")
        count = try database.prepare(
            """
            UPDATE posts SET likes = likes + ?, version = version + 1, updated = ? WHERE id = ?
            RETURNING version
            """
        )
        remove = try database.prepare("DELETE FROM posts WHERE id = ?")
        one = try database.prepare(
            """
            SELECT p.id, p.head, p.likes, p.version, p.updated, p.author, l.user FROM posts p
            LEFT JOIN likes l ON l.user = ?1 AND l.post = p.id WHERE p.id = ?2
            """
        )
        feedAfter = try database.prepare(
            """
            SELECT p.id, p.head, p.likes, p.version, p.updated, p.author, l.user FROM posts p
            LEFT JOIN likes l ON l.user = ?3 AND l.post = p.id WHERE p.id < ?1 ORDER BY p.id DESC LIMIT ?2
            """
        )
        feedBounds = try database.prepare("SELECT (SELECT min(id) FROM posts), (SELECT max(id) FROM posts)")
        feedBefore = try database.prepare(
            """
            SELECT p.id, p.head, p.likes, p.version, p.updated, p.author, l.user FROM posts p
            LEFT JOIN likes l ON l.user = ?3 AND l.post = p.id WHERE p.id > ?1 ORDER BY p.id LIMIT ?2
            """
        )
        authoredAfter = try database.prepare(
            """
            SELECT p.id, p.head, p.likes, p.version, p.updated, p.author, l.user FROM posts p
            LEFT JOIN likes l ON l.user = ?3 AND l.post = p.id WHERE p.author = ?4 AND p.id < ?1
            ORDER BY p.id DESC LIMIT ?2
            """
        )
        authoredBefore = try database.prepare(
            """
            SELECT p.id, p.head, p.likes, p.version, p.updated, p.author, l.user FROM posts p
            LEFT JOIN likes l ON l.user = ?3 AND l.post = p.id WHERE p.author = ?4 AND p.id > ?1
            ORDER BY p.id LIMIT ?2
            """
        )
        authoredBounds = try database.prepare("SELECT min(id), max(id) FROM posts WHERE author = ?")
        offset = try database.prepare(
            """
            SELECT p.id, p.head, p.likes, p.version, p.updated, p.author, l.user FROM posts p
            LEFT JOIN likes l ON l.user = ?3 AND l.post = p.id ORDER BY p.id DESC LIMIT ?2 OFFSET ?1
            """
        )
        number = try database.prepare("SELECT count(*) FROM posts")
        next = try database.prepare("SELECT seq + 1 FROM sqlite_sequence WHERE name = 'posts'")
        heads = try database.prepare("SELECT id, head FROM posts WHERE id < ? ORDER BY id DESC LIMIT ?")
    }

    /// Adds a post. The row must be new.
    func add(
        _ row: Int64,
        author: Int64,
        head: [UInt8],
        likes: Int64 = 0,
        version: Int64 = 1,
        at: WallTime
    ) throws(SQLiteError) {
        try insert.bind(row, at: 1)
        try insert.bind(author, at: 2)
        try insert.bind(head, at: 3)
        try insert.bind(likes, at: 4)
        try insert.bind(version, at: 5)
        try insert.bind(at.milliseconds, at: 6)
        try insert.run()
    }

    func find(_ row: Int64) throws -> PostRow? {
        defer { select.reset() }
        try select.bind(row, at: 1)
        guard try select.step() else { return nil }
        return PostRow(
            row: row,
            author: select.int64(0),
            members: try EntityHead.decode(select.bytes(1)),
            version: select.int64(2),
            updated: WallTime(milliseconds: select.int64(3))
        )
    }

    /// Whether there is such a post.
    func contains(_ row: Int64) throws(SQLiteError) -> Bool {
        defer { select.reset() }
        try select.bind(row, at: 1)
        return try select.step()
    }

    func replace(_ post: PostRow) throws(SQLiteError) {
        try update.bind(EntityHead.encode(post.members), at: 1)
        try update.bind(post.version, at: 2)
        try update.bind(post.updated.milliseconds, at: 3)
        try update.bind(post.row, at: 4)
        try update.run()
    }

    /// Adds to the number of likes and returns the new version, or nil when there is no such post.
    func addLikes(_ delta: Int64, to row: Int64, at: WallTime) throws(SQLiteError) -> Int64? {
        defer { count.reset() }
        try count.bind(delta, at: 1)
        try count.bind(at.milliseconds, at: 2)
        try count.bind(row, at: 3)
        guard try count.step() else { return nil }
        let version = count.int64(0)
        // A RETURNING statement takes effect only when it is stepped to its end.
        while try count.step() {}
        return version
    }

    func delete(_ row: Int64) throws(SQLiteError) {
        try remove.bind(row, at: 1)
        try remove.run()
    }

    /// Appends one post as `viewer` sees it, and returns its version and author.
    func append(
        _ row: Int64,
        viewer: Int64,
        to bytes: inout [UInt8]
    ) throws(SQLiteError) -> (version: EntityVersion, author: Int64)? {
        defer { one.reset() }
        try one.bind(viewer, at: 1)
        try one.bind(row, at: 2)
        guard try one.step() else { return nil }
        PostJSON.append(one, isLiked: !one.isNull(6), to: &bytes)
        return (EntityVersion(one.int64(3), WallTime(milliseconds: one.int64(4))), one.int64(5))
    }

    /// The row of the next post. Rows of deleted posts are not reused.
    func nextRow() throws(SQLiteError) -> Int64 {
        defer { next.reset() }
        return try next.step() ? next.int64(0) : 1
    }

    func total() throws(SQLiteError) -> Int64 {
        defer { number.reset() }
        return try number.step() ? number.int64(0) : 0
    }

    /// Appends the posts from an offset; returns their number.
    func appendOffset(
        _ position: Int,
        viewer: Int64,
        limit: Int,
        to bytes: inout [UInt8]
    ) throws(SQLiteError) -> Int {
        defer { offset.reset() }
        try offset.bind(Int64(position), at: 1)
        try offset.bind(Int64(limit), at: 2)
        try offset.bind(viewer, at: 3)
        var count = 0
        while try offset.step() {
            if count > 0 { bytes.append(UInt8(ascii: ",")) }
            PostJSON.append(offset, isLiked: !offset.isNull(6), to: &bytes)
            count += 1
        }
        return count
    }

    /// The posts older than a row whose texts have all words, newest first.
    func search(_ words: [String], before row: Int64, limit: Int, scanning maximum: Int) throws -> Found {
        defer { heads.reset() }
        try heads.bind(row, at: 1)
        try heads.bind(Int64(maximum + 1), at: 2)
        return try Found(words, limit: limit, scanning: maximum) {
            guard try heads.step() else { return nil }
            return (heads.int64(0), [try EntityHead.decode(heads.bytes(1))["text"]])
        }
    }

    /// The lowest and highest row, of all posts or of one author's.
    func extent(author: Int64?) throws(SQLiteError) -> ClosedRange<Int64>? {
        let bounds = author != nil ? authoredBounds : feedBounds
        defer { bounds.reset() }
        if let author { try bounds.bind(author, at: 1) }
        guard try bounds.step(), !bounds.isNull(0) else { return nil }
        return bounds.int64(0)...bounds.int64(1)
    }

    /// Appends up to `limit` posts in a form, newest first and separated by commas.
    func appendPage(
        _ start: PageStart,
        author: Int64?,
        viewer: Int64,
        limit: Int,
        form: ItemForm,
        to bytes: inout [UInt8]
    ) throws(SQLiteError) -> PostPage {
        let end: Int64
        switch start {
        case .newest: end = .max
        case .after(let row): end = row
        case .before(let row):
            return try appendNewer(than: row, author: author, viewer: viewer, limit: limit, form: form, to: &bytes)
        }
        return try appendOlder(than: end, author: author, viewer: viewer, limit: limit, form: form, to: &bytes)
    }

    private func appendOlder(
        than row: Int64,
        author: Int64?,
        viewer: Int64,
        limit: Int,
        form: ItemForm,
        to bytes: inout [UInt8]
    ) throws(SQLiteError) -> PostPage {
        let statement = author != nil ? authoredAfter : feedAfter
        defer { statement.reset() }
        try bind(statement, row, limit: limit, viewer: viewer, author: author)
        var page = PostPage()
        while try statement.step() {
            if page.newest == nil {
                page.newest = statement.int64(0)
            } else {
                bytes.append(UInt8(ascii: ","))
            }
            page.oldest = statement.int64(0)
            page.authors.append(statement.int64(5))
            PostJSON.append(statement, isLiked: !statement.isNull(6), form: form, to: &bytes)
        }
        return page
    }

    private func appendNewer(
        than row: Int64,
        author: Int64?,
        viewer: Int64,
        limit: Int,
        form: ItemForm,
        to bytes: inout [UInt8]
    ) throws(SQLiteError) -> PostPage {
        let statement = author != nil ? authoredBefore : feedBefore
        defer { statement.reset() }
        try bind(statement, row, limit: limit, viewer: viewer, author: author)
        var page = PostPage()
        var posts: [[UInt8]] = []
        while try statement.step() {
            var post: [UInt8] = []
            PostJSON.append(statement, isLiked: !statement.isNull(6), form: form, to: &post)
            posts.append(post)
            if page.oldest == nil { page.oldest = statement.int64(0) }
            page.newest = statement.int64(0)
            page.authors.append(statement.int64(5))
        }
        page.authors.reverse()
        for (index, post) in posts.reversed().enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            bytes.append(contentsOf: post)
        }
        return page
    }

    private func bind(
        _ statement: Statement,
        _ row: Int64,
        limit: Int,
        viewer: Int64,
        author: Int64?
    ) throws(SQLiteError) {
        try statement.bind(row, at: 1)
        try statement.bind(Int64(limit), at: 2)
        try statement.bind(viewer, at: 3)
        if let author { try statement.bind(author, at: 4) }
    }
}

extension PostTable {
    /// The members of a post that are stored in its head.
    static func members(
        row: Int64,
        author: Int64,
        text: String,
        image: JSONValue?,
        created: WallTime,
        edited: WallTime? = nil
    ) -> JSONObject {
        var members = JSONObject()
        members["id"] = .string(EntityID(.post, row).text)
        members["authorId"] = .string(EntityID(.profile, author).text)
        members["text"] = .string(text)
        members["image"] = image ?? .null
        members["createdAt"] = .string(created.rfc3339())
        members["editedAt"] = edited.map { .string($0.rfc3339()) } ?? .null
        return members
    }
}
