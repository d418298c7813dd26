import LarderSQLite
import LarderTime

/// Likes by person and post. A like is a state: setting it twice has no further effect.
struct LikeTable {
    let sql: SQL

    /// Sets a like; returns whether it changed anything (false if there is no such post).
    func set(user: Int64, post: Int64, at: WallTime) throws(SQLiteError) -> Bool {
        try sql.run(
            "INSERT OR IGNORE INTO likes (user, post, at) SELECT ?1, id, ?3 FROM posts WHERE id = ?2",
            [user, post, at]
        )
        return sql.database.changes > 0
    }

    /// Clears a like; returns whether it changed anything.
    func clear(user: Int64, post: Int64) throws(SQLiteError) -> Bool {
        try sql.run("DELETE FROM likes WHERE user = ? AND post = ?", [user, post])
        return sql.database.changes > 0
    }
}
