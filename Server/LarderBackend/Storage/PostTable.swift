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
    func add(_ post: PostRow, likes: Int = 0) throws(SQLiteError) {
        try sql.run(
            "INSERT INTO posts (id, author, head, likes, version, updated) VALUES (?, ?, ?, ?, ?, ?)",
            [post.row, post.author, EntityHead.encode(post.members), likes, post.version, post.updated]
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

    /// Posts with the viewer, ?3, if it likes the post.
    private static let select: SQLText = """
        SELECT p.id, p.head, p.likes, p.version, p.updated, p.author, l.user FROM posts p
        LEFT JOIN likes l ON l.user = ?3 AND l.post = p.id
        """

    /// Appends one post as `viewer` sees it, and returns its version and author.
    func append(
        _ row: Int64,
        viewer: Int64,
        to bytes: inout [UInt8]
    ) throws(SQLiteError) -> (version: EntityVersion, author: Int64)? {
        try sql.first("\(Self.select) WHERE p.id = ?1 LIMIT ?2", [row, 1, viewer]) { post in
            Self.append(post, .whole, to: &bytes)
            return (post.version(3), post.int64(5))
        }
    }

    /// The row of the next post. Rows of deleted posts are not reused.
    func nextRow() throws(SQLiteError) -> Int64 {
        try sql.integer("SELECT seq + 1 FROM sqlite_sequence WHERE name = 'posts'") ?? 1
    }

    func total() throws(SQLiteError) -> Int64 { try sql.integer("SELECT count(*) FROM posts") ?? 0 }

    /// The posts from an offset, newest first.
    func page(offset: Int, viewer: Int64, limit: Int) throws(SQLiteError) -> [[UInt8]] {
        try sql.all("\(Self.select) ORDER BY p.id DESC LIMIT ?2 OFFSET ?1", [offset, limit, viewer]) {
            Self.json($0, .whole)
        }
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

    /// Up to `limit` posts in a form, newest first: their rows, their authors and their JSON.
    func page(
        _ start: PageStart,
        author: Int64?,
        viewer: Int64,
        limit: Int,
        form: ItemForm
    ) throws(SQLiteError) -> [(row: Int64, author: Int64, json: [UInt8])] {
        let select: SQLText = author == nil ? "\(Self.select) WHERE" : "\(Self.select) WHERE p.author = ?4 AND"
        return try sql.page(start, of: "p.id", limit: limit, select, [viewer] + (author.map { [$0] } ?? [])) { post in
            (post.int64(0), post.int64(5), Self.json(post, form))
        }
    }

    private static func json(_ post: Statement, _ form: ItemForm) -> [UInt8] {
        var json: [UInt8] = []
        json.reserveCapacity(512)
        append(post, form, to: &json)
        return json
    }

    private static func append(_ post: Statement, _ form: ItemForm, to bytes: inout [UInt8]) {
        if form == .index {
            return bytes.append(entryOf: EntityID(.post, post.int64(0)), version: post.int64(3))
        }
        post.append(1, to: &bytes)
        bytes.append(",\"likeCount\":")
        bytes.append(decimal: post.int64(2))
        bytes.append(post.isNull(6) ? ",\"likedByMe\":false" : ",\"likedByMe\":true")
        bytes.append(post.version(3))
    }
}

extension PostRow {
    init(
        _ row: Int64,
        author: Int64,
        text: String,
        image: JSONValue?,
        created: WallTime,
        edited: WallTime? = nil,
        version: Int64 = 1
    ) {
        let members = JSONObject([
            "id": EntityID(.post, row).json, "authorId": EntityID(.profile, author).json, "text": .string(text),
            "image": image ?? .null, "createdAt": created.json, "editedAt": edited?.json ?? .null,
        ])
        self.init(row: row, author: author, members: members, version: version, updated: edited ?? created)
    }
}
