import LarderSQLite
import LarderTime

/// Who likes which post. A like is a fact and not an event: setting it twice is setting it once.
final class LikeTable {
    private let insert: Statement
    private let delete: Statement

    init(_ database: Database) throws(SQLiteError) {
        insert = try database.prepare(
            "INSERT OR IGNORE INTO likes (user, post, at) SELECT ?1, id, ?3 FROM posts WHERE id = ?2"
        )
        delete = try database.prepare("DELETE FROM likes WHERE user = ? AND post = ?")
    }

    /// Returns whether that changed anything: not if there is no such post.
    func set(user: Int64, post: Int64, at: WallTime, in database: Database) throws(SQLiteError) -> Bool {
        try insert.bind(user, at: 1)
        try insert.bind(post, at: 2)
        try insert.bind(at.milliseconds, at: 3)
        try insert.run()
        return database.changes > 0
    }

    /// Returns whether that changed anything.
    func clear(user: Int64, post: Int64, in database: Database) throws(SQLiteError) -> Bool {
        try delete.bind(user, at: 1)
        try delete.bind(post, at: 2)
        try delete.run()
        return database.changes > 0
    }
}
