import LarderSQLite
import LarderTime

/// Likes by person and post. A like is a state: setting it twice has no further effect.
final class LikeTable {
    private let insert: Statement
    private let delete: Statement

    init(_ database: Database) throws(SQLiteError) {
        insert = try database.prepare(
            "INSERT OR IGNORE INTO likes (user, post, at) SELECT ?1, id, ?3 FROM posts WHERE id = ?2"
        )
        delete = try database.prepare("DELETE FROM likes WHERE user = ? AND post = ?")
    }

    /// Sets a like; returns whether it changed anything (false if there is no such post).
    func set(user: Int64, post: Int64, at: WallTime, in database: Database) throws(SQLiteError) -> Bool {
        try insert.bind(user, at: 1)
        try insert.bind(post, at: 2)
        try insert.bind(at.milliseconds, at: 3)
        try insert.run()
        return database.changes > 0
    }

    /// Clears a like; returns whether it changed anything.
    func clear(user: Int64, post: Int64, in database: Database) throws(SQLiteError) -> Bool {
        try delete.bind(user, at: 1)
        try delete.bind(post, at: 2)
        try delete.run()
        return database.changes > 0
    }
}
