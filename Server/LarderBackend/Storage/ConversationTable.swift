import LarderSQLite

/// The members of conversations.
struct ConversationTable {
    let sql: SQL

    func add(_ users: [Int64], to conversation: Int64) throws(SQLiteError) {
        for user in users {
            try sql.run("INSERT INTO members (user, conversation) VALUES (?, ?)", [user, conversation])
        }
    }

    /// The conversations of a person.
    func of(_ user: Int64) throws(SQLiteError) -> Set<Int64> {
        Set(try sql.all("SELECT conversation FROM members WHERE user = ?", [user]) { $0.int64(0) })
    }
}
