import LarderSQLite
import LarderTime

/// Likes by person and post. A like is a state: setting it twice has no further effect.
struct LikeTable {
    let sql: SQL

    func has(user: Int64, post: Int64) throws(SQLiteError) -> Bool {
        try sql.integer("SELECT 1 FROM likes WHERE user = ? AND post = ?", [user, post]) != nil
    }

    /// Sets or clears a like; returns whether that changed anything.
    func set(_ isLiked: Bool, user: Int64, post: Int64, at: WallTime) throws(SQLiteError) -> Bool {
        if isLiked {
            try sql.run("INSERT OR IGNORE INTO likes (user, post, at) VALUES (?, ?, ?)", [user, post, at])
        } else {
            try sql.run("DELETE FROM likes WHERE user = ? AND post = ?", [user, post])
        }
        return sql.database.changes > 0
    }

    func clear(post: Int64) throws(SQLiteError) { try sql.run("DELETE FROM likes WHERE post = ?", [post]) }
}
