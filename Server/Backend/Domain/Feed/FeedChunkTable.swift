import LarderSQLite

/// The posts of the feed once more, as they are sent, sixteen to a row: a page is two or three rows of this table.
///
/// It says what the table of posts says, because it is changed in the same transaction as that. The past is not kept of it:
/// who reads the past reads the posts themselves. Confined like its database.
final class FeedChunkTable {
    private let below: Statement
    private let find: Statement
    private let insert: Statement
    private let update: Statement
    private let remove: Statement
    /// Told of every change before the table is changed.
    private var shelf = FeedShelf()

    static let name = "feed_chunks"

    init(_ database: Database) throws(SQLiteError) {
        below = try database.prepare("SELECT posts, id FROM feed_chunks WHERE id <= ? ORDER BY id DESC")
        find = try database.prepare("SELECT posts FROM feed_chunks WHERE id = ?")
        insert = try database.prepare("INSERT INTO feed_chunks (posts, id) VALUES (?, ?)")
        update = try database.prepare("UPDATE feed_chunks SET posts = ? WHERE id = ?")
        remove = try database.prepare("DELETE FROM feed_chunks WHERE id = ?")
    }

    // MARK: Reading

    /// Fills a page with posts from where it stands. Not within a transaction: what it shows may yet be undone.
    func read(into page: inout FeedPage) throws(SQLiteError) {
        // The next post has a number below the page's end.
        var next = FeedChunkLayout.chunk(of: max(page.end, 1) - 1)
        while !page.isFull, let kept = shelf.chunk(below: next) {
            try page.add(kept.bytes.span, kept.layout)
            next = kept.id - 1
        }
        guard !page.isFull else { return }
        defer { below.reset() }
        try below.bind(next, at: 1)
        while !page.isFull, try below.step() {
            let id = below.int64(1)
            let isWanted = shelf.wants(next)
            try below.withBytes(0) { bytes throws(SQLiteError) in
                guard let layout = FeedChunkLayout(bytes) else { throw Self.damage(id) }
                try page.add(bytes, layout)
                if isWanted { shelf.put(FeedShelf.Chunk(id: id, bytes: below.bytes(0), layout: layout), below: next) }
            }
            next = id - 1
        }
    }

    // MARK: Changing

    /// Puts a post into its chunk as it is now, in the transaction that changed it.
    func put(_ post: FeedChunk.Post) throws(SQLiteError) {
        let id = FeedChunkLayout.chunk(of: post.row)
        guard var stored = try stored(id) else { return try change(id, nil) { $0.put(post) } }
        shelf.forget(id)
        if FeedChunk.replace(post, in: &stored) { return try save(stored, update, id) }
        try change(id, stored) { $0.put(post) }
    }

    /// Takes a post out of its chunk, in the transaction that deletes it.
    func delete(_ row: Int64) throws(SQLiteError) {
        let id = FeedChunkLayout.chunk(of: row)
        try change(id, try stored(id)) { $0.remove(row) }
    }

    private func stored(_ id: Int64) throws(SQLiteError) -> [UInt8]? {
        defer { find.reset() }
        try find.bind(id, at: 1)
        return try find.step() ? find.bytes(0) : nil
    }

    private func change(_ id: Int64, _ stored: [UInt8]?, _ body: (inout FeedChunk) -> Void) throws(SQLiteError) {
        guard var chunk = stored.map({ FeedChunk($0) }) ?? FeedChunk() else { throw Self.damage(id) }
        body(&chunk)
        // Where one comes or goes, another may be the next below it.
        if stored == nil || chunk.posts.isEmpty { shelf.forgetAll() } else { shelf.forget(id) }
        guard !chunk.posts.isEmpty else {
            try remove.bind(id, at: 1)
            return try remove.run()
        }
        try save(chunk.bytes, stored == nil ? insert : update, id)
    }

    private func save(_ bytes: [UInt8], _ statement: Statement, _ id: Int64) throws(SQLiteError) {
        try statement.bind(id, at: 2)
        try statement.run(lending: bytes, at: 1)
    }

    private static func damage(_ id: Int64) -> SQLiteError {
        SQLiteError(code: .corrupt, message: "the feed's chunk of \(FeedChunkLayout.posts(of: id)) is damaged")
    }

    // MARK: All of them

    /// Makes all chunks anew out of the posts, in the running transaction. Cost: it reads every post.
    static func rebuild(in database: Database) throws(SQLiteError) {
        try database.execute("DELETE FROM feed_chunks")
        let insert = try database.prepare("INSERT INTO feed_chunks (posts, id) VALUES (?, ?)")
        try make(from: database) { id, bytes throws(SQLiteError) in
            try insert.bind(id, at: 2)
            try insert.run(lending: bytes, at: 1)
        }
    }

    /// The numbers of chunks that do not say what the posts say; none in a sound database. Cost: it reads every post twice.
    static func faults(in database: Database) throws(SQLiteError) -> [Int64] {
        let all = try database.prepare("SELECT id, posts FROM feed_chunks ORDER BY id")
        defer { all.reset() }
        var faults: [Int64] = []
        var isStored = try all.step()
        try make(from: database) { id, bytes throws(SQLiteError) in
            while isStored, all.int64(0) < id {
                faults.append(all.int64(0))
                isStored = try all.step()
            }
            guard isStored, all.int64(0) == id else { return faults.append(id) }
            if all.bytes(1) != bytes { faults.append(id) }
            isStored = try all.step()
        }
        while isStored {
            faults.append(all.int64(0))
            isStored = try all.step()
        }
        return faults
    }

    /// Calls `body` with every chunk that the posts make, lowest first.
    private static func make(
        from database: Database,
        _ body: (Int64, [UInt8]) throws(SQLiteError) -> Void
    ) throws(SQLiteError) {
        let posts = try database.prepare("SELECT id, head, likes, version, updated, author FROM posts ORDER BY id")
        defer { posts.reset() }
        var chunk = FeedChunk()
        var number: Int64 = 0
        while try posts.step() {
            let post = FeedChunk.Post(posts)
            if FeedChunkLayout.chunk(of: post.row) != number, !chunk.posts.isEmpty {
                try body(number, chunk.bytes)
                chunk = FeedChunk()
            }
            number = FeedChunkLayout.chunk(of: post.row)
            chunk.put(post)
        }
        if !chunk.posts.isEmpty { try body(number, chunk.bytes) }
    }
}
