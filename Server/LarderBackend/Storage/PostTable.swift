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
struct PostTable {
    let sql: SQL

    /// Adds a post. The row must be new.
    func add(
        _ row: Int64,
        author: Int64,
        head: [UInt8],
        likes: Int64 = 0,
        version: Int64 = 1,
        at: WallTime
    ) throws(SQLiteError) {
        try sql.run(
            "INSERT INTO posts (id, author, head, likes, version, updated) VALUES (?, ?, ?, ?, ?, ?)",
            [row, author, head, likes, version, at]
        )
    }

    func find(_ row: Int64) throws -> PostRow? {
        try sql.first("SELECT author, head, version, updated FROM posts WHERE id = ?", [row]) { post in
            PostRow(
                row: row,
                author: post.int64(0),
                members: try EntityHead.decode(post.bytes(1)),
                version: post.int64(2),
                updated: post.time(3)
            )
        }
    }

    /// Whether there is such a post.
    func contains(_ row: Int64) throws(SQLiteError) -> Bool {
        try sql.integer("SELECT 1 FROM posts WHERE id = ?", [row]) != nil
    }

    func replace(_ post: PostRow) throws(SQLiteError) {
        try sql.run(
            "UPDATE posts SET head = ?, version = ?, updated = ? WHERE id = ?",
            [EntityHead.encode(post.members), post.version, post.updated, post.row]
        )
    }

    /// Adds to the number of likes and returns the new version, or nil when there is no such post.
    func addLikes(_ delta: Int64, to row: Int64, at: WallTime) throws(SQLiteError) -> Int64? {
        // A RETURNING statement takes effect only when it is stepped to its end.
        try sql.all(
            "UPDATE posts SET likes = likes + ?, version = version + 1, updated = ? WHERE id = ? RETURNING version",
            [delta, at, row]
        ) { $0.int64(0) }.first
    }

    func delete(_ row: Int64) throws(SQLiteError) { try sql.run("DELETE FROM posts WHERE id = ?", [row]) }

    /// Appends one post as `viewer` sees it, and returns its version and author.
    func append(
        _ row: Int64,
        viewer: Int64,
        to bytes: inout [UInt8]
    ) throws(SQLiteError) -> (version: EntityVersion, author: Int64)? {
        try sql.first(
            """
            SELECT p.id, p.head, p.likes, p.version, p.updated, p.author, l.user FROM posts p
            LEFT JOIN likes l ON l.user = ?1 AND l.post = p.id WHERE p.id = ?2
            """,
            [viewer, row]
        ) { post in
            PostJSON.append(post, to: &bytes)
            return (post.version(3), post.int64(5))
        }
    }

    /// The row of the next post. Rows of deleted posts are not reused.
    func nextRow() throws(SQLiteError) -> Int64 {
        try sql.integer("SELECT seq + 1 FROM sqlite_sequence WHERE name = 'posts'") ?? 1
    }

    func total() throws(SQLiteError) -> Int64 { try sql.integer("SELECT count(*) FROM posts") ?? 0 }

    /// Appends the posts from an offset; returns their number.
    func appendOffset(
        _ position: Int,
        viewer: Int64,
        limit: Int,
        to bytes: inout [UInt8]
    ) throws(SQLiteError) -> Int {
        let posts = try posts(
            """
            SELECT p.id, p.head, p.likes, p.version, p.updated, p.author, l.user FROM posts p
            LEFT JOIN likes l ON l.user = ?3 AND l.post = p.id ORDER BY p.id DESC LIMIT ?2 OFFSET ?1
            """,
            [position, limit, viewer],
            .whole
        )
        bytes.append(items: posts.map(\.json))
        return posts.count
    }

    /// The posts older than a row whose texts have all words, newest first.
    func search(_ words: [String], before row: Int64, limit: Int, scanning maximum: Int) throws -> Found {
        let heads = try sql.bound(
            "SELECT id, head FROM posts WHERE id < ? ORDER BY id DESC LIMIT ?",
            [row, maximum + 1]
        )
        defer { heads.reset() }
        return try Found(words, limit: limit, scanning: maximum) {
            guard try heads.step() else { return nil }
            return (heads.int64(0), [try EntityHead.decode(heads.bytes(1))["text"]])
        }
    }

    /// The lowest and highest row, of all posts or of one author's.
    func extent(author: Int64?) throws(SQLiteError) -> ClosedRange<Int64>? {
        guard let author else {
            return try sql.range("SELECT (SELECT min(id) FROM posts), (SELECT max(id) FROM posts)")
        }
        return try sql.range("SELECT min(id), max(id) FROM posts WHERE author = ?", [author])
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
        var found: [(row: Int64, author: Int64, json: [UInt8])]
        switch (start, author) {
        case (.before(let row), nil):
            found = try posts(
                """
                SELECT p.id, p.head, p.likes, p.version, p.updated, p.author, l.user FROM posts p
                LEFT JOIN likes l ON l.user = ?3 AND l.post = p.id WHERE p.id > ?1 ORDER BY p.id LIMIT ?2
                """,
                [row, limit, viewer],
                form
            ).reversed()
        case (.before(let row), let author?):
            found = try posts(
                """
                SELECT p.id, p.head, p.likes, p.version, p.updated, p.author, l.user FROM posts p
                LEFT JOIN likes l ON l.user = ?3 AND l.post = p.id WHERE p.author = ?4 AND p.id > ?1
                ORDER BY p.id LIMIT ?2
                """,
                [row, limit, viewer, author],
                form
            ).reversed()
        case (_, nil):
            found = try posts(
                """
                SELECT p.id, p.head, p.likes, p.version, p.updated, p.author, l.user FROM posts p
                LEFT JOIN likes l ON l.user = ?3 AND l.post = p.id WHERE p.id < ?1 ORDER BY p.id DESC LIMIT ?2
                """,
                [start.older, limit, viewer],
                form
            )
        case (_, let author?):
            found = try posts(
                """
                SELECT p.id, p.head, p.likes, p.version, p.updated, p.author, l.user FROM posts p
                LEFT JOIN likes l ON l.user = ?3 AND l.post = p.id WHERE p.author = ?4 AND p.id < ?1
                ORDER BY p.id DESC LIMIT ?2
                """,
                [start.older, limit, viewer, author],
                form
            )
        }
        bytes.append(items: found.map(\.json))
        return PostPage(newest: found.first?.row, oldest: found.last?.row, authors: found.map(\.author))
    }

    /// The posts of a statement: id, head, likes, version, updated, author and the viewer if it likes the post.
    private func posts(
        _ text: StaticString,
        _ values: [any SQLValue],
        _ form: ItemForm
    ) throws(SQLiteError) -> [(row: Int64, author: Int64, json: [UInt8])] {
        try sql.all(text, values) { post in
            var json: [UInt8] = []
            json.reserveCapacity(512)
            PostJSON.append(post, form: form, to: &json)
            return (post.int64(0), post.int64(5), json)
        }
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
