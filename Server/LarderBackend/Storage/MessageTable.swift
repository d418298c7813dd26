import LarderCoding
import LarderSQLite
import LarderTime

struct MessageRow {
    let row: Int64
    let conversation: Int64
    let author: Int64
    var members: JSONObject
    var isDeleted: Bool
    var version: Int64
    var updated: WallTime
}

/// Messages, numbered in the order in which the server accepted them, which is their order in the conversation.
struct MessageTable {
    let sql: SQL

    /// The row number of the next message.
    func nextRow() throws(SQLiteError) -> Int64 {
        try sql.integer("SELECT seq + 1 FROM sqlite_sequence WHERE name = 'messages'") ?? 1
    }

    func add(
        _ row: Int64,
        conversation: Int64,
        author: Int64,
        clientID: String?,
        head: [UInt8],
        isDeleted: Bool = false,
        at: WallTime
    ) throws(SQLiteError) {
        try sql.run(
            """
            INSERT INTO messages (id, conversation, author, client_id, head, deleted, version, updated)
            VALUES (?, ?, ?, ?, ?, ?, 1, ?)
            """,
            [row, conversation, author, clientID, head, isDeleted, at]
        )
    }

    /// A message, including a deleted one.
    func find(_ row: Int64) throws -> MessageRow? {
        try sql.first(
            "SELECT conversation, author, head, deleted, version, updated FROM messages WHERE id = ?",
            [row]
        ) { message in
            MessageRow(
                row: row,
                conversation: message.int64(0),
                author: message.int64(1),
                members: try EntityHead.decode(message.bytes(2)),
                isDeleted: message.bool(3),
                version: message.int64(4),
                updated: message.time(5)
            )
        }
    }

    func row(conversation: Int64, author: Int64, clientID: String) throws(SQLiteError) -> Int64? {
        try sql.integer(
            "SELECT id FROM messages WHERE conversation = ? AND author = ? AND client_id = ?",
            [conversation, author, clientID]
        )
    }

    func replace(_ message: MessageRow) throws(SQLiteError) {
        try sql.run(
            "UPDATE messages SET head = ?, deleted = ?, version = ?, updated = ? WHERE id = ?",
            [EntityHead.encode(message.members), message.isDeleted, message.version, message.updated, message.row]
        )
    }

    func extent(conversation: Int64) throws(SQLiteError) -> ClosedRange<Int64>? {
        try sql.range("SELECT min(id), max(id) FROM messages WHERE conversation = ? AND deleted = 0", [conversation])
    }

    /// Appends one message; nil if it does not exist or was deleted.
    func append(_ row: Int64, to bytes: inout [UInt8]) throws(SQLiteError) -> EntityVersion? {
        try sql.first("SELECT head, version, updated FROM messages WHERE id = ? AND deleted = 0", [row]) { message in
            message.append(0, to: &bytes)
            bytes.append(message.version(1))
            return message.version(1)
        }
    }

    /// The messages of a conversation that are not deleted, newest first: rows and JSON.
    func page(
        _ start: PageStart,
        conversation: Int64,
        limit: Int
    ) throws(SQLiteError) -> [(row: Int64, json: [UInt8])] {
        func items(_ text: StaticString, _ bound: Int64) throws(SQLiteError) -> [(row: Int64, json: [UInt8])] {
            try sql.all(text, [conversation, bound, limit]) { message in
                var json = message.bytes(1)
                json.append(message.version(2))
                return (message.int64(0), json)
            }
        }
        if case .before(let row) = start {
            return try items(
                """
                SELECT id, head, version, updated FROM messages WHERE conversation = ? AND deleted = 0 AND id > ?
                ORDER BY id LIMIT ?
                """,
                row
            ).reversed()
        }
        return try items(
            """
            SELECT id, head, version, updated FROM messages WHERE conversation = ? AND deleted = 0 AND id < ?
            ORDER BY id DESC LIMIT ?
            """,
            start.older
        )
    }
}

extension MessageTable {
    /// A message that is not deleted, and the nearest ones before and after it, newest first: half of the page is not older than it.
    func page(
        around row: Int64,
        conversation: Int64,
        limit: Int
    ) throws(SQLiteError) -> [(row: Int64, json: [UInt8])] {
        let newer = try page(.before(row - 1), conversation: conversation, limit: (limit + 1) / 2)
        guard newer.count < limit else { return newer }
        return newer + (try page(.after(row), conversation: conversation, limit: limit - newer.count))
    }

    /// The members of a message that are stored in its head.
    static func members(
        row: Int64,
        conversation: Int64,
        author: Int64,
        clientID: String?,
        text: String,
        image: JSONValue? = nil,
        sent: WallTime,
        edited: WallTime?
    ) -> JSONObject {
        var members = JSONObject()
        members["id"] = .string(EntityID(.message, row).text)
        members["conversationId"] = .string(EntityID(.conversation, conversation).text)
        members["authorId"] = .string(EntityID(.profile, author).text)
        members["clientId"] = clientID.map { .string($0) } ?? .null
        members["text"] = .string(text)
        members["image"] = image
        members["sentAt"] = .string(sent.rfc3339())
        members["editedAt"] = edited.map { .string($0.rfc3339()) } ?? .null
        return members
    }
}
