import LarderCoding
import LarderSQLite
import LarderTime

/// Conversations and their members.
struct ConversationTable {
    let sql: SQL

    func add(_ row: Int64, members: JSONObject, users: [Int64], at: WallTime) throws(SQLiteError) {
        try sql.run(
            "INSERT INTO conversations (id, head, last_message, version, updated) VALUES (?, ?, NULL, 1, ?)",
            [row, EntityHead.encode(members), at]
        )
        for user in users { try sql.run("INSERT INTO members (user, conversation) VALUES (?, ?)", [user, row]) }
    }

    func isMember(_ user: Int64, of conversation: Int64) throws(SQLiteError) -> Bool {
        try sql.integer("SELECT 1 FROM members WHERE user = ? AND conversation = ?", [user, conversation]) != nil
    }

    /// The conversations of a person.
    func of(_ user: Int64) throws(SQLiteError) -> Set<Int64> {
        Set(try sql.all("SELECT conversation FROM members WHERE user = ?", [user]) { $0.int64(0) })
    }

    /// Records activity in a conversation; returns its new version.
    func touch(_ row: Int64, lastMessage: Int64?, at: WallTime) throws(SQLiteError) -> Int64 {
        // A RETURNING statement takes effect only when it is stepped to its end.
        try sql.all(
            """
            UPDATE conversations SET last_message = ?, version = version + 1, updated = ?
            WHERE id = ? RETURNING version
            """,
            [lastMessage, at, row]
        ) { $0.int64(0) }.last ?? 0
    }

    func append(_ row: Int64, to bytes: inout [UInt8]) throws(SQLiteError) -> EntityVersion? {
        try sql.first("SELECT id, head, last_message, version, updated FROM conversations WHERE id = ?", [row]) {
            Self.append($0, to: &bytes)
            return $0.version(3)
        }
    }

    /// A person's conversations in row order: rows and JSON.
    func page(of user: Int64, after row: Int64, limit: Int) throws(SQLiteError) -> [(row: Int64, json: [UInt8])] {
        try sql.all(
            """
            SELECT c.id, c.head, c.last_message, c.version, c.updated FROM members m
            JOIN conversations c ON c.id = m.conversation WHERE m.user = ? AND m.conversation > ? ORDER BY c.id LIMIT ?
            """,
            [user, row, limit]
        ) { conversation in
            var json: [UInt8] = []
            Self.append(conversation, to: &json)
            return (conversation.int64(0), json)
        }
    }

    /// Appends the conversation of the current row: id, head, last message, version and updated.
    private static func append(_ row: Statement, to bytes: inout [UInt8]) {
        row.append(1, to: &bytes)
        bytes.append(",\"lastMessageId\":")
        if let message = row.optional(2) {
            bytes.append(identifier: EntityID(.message, message))
        } else {
            bytes.append("null")
        }
        bytes.append(row.version(3))
    }
}
