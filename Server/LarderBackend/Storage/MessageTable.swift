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

    func add(_ message: MessageRow, clientID: String?) throws(SQLiteError) {
        try sql.run(
            """
            INSERT INTO messages (id, conversation, author, client_id, head, deleted, version, updated)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?)
            """,
            [
                message.row, message.conversation, message.author, clientID, EntityHead.encode(message.members),
                message.isDeleted, message.version, message.updated,
            ]
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
        let select: SQLText =
            "SELECT id, head, version, updated FROM messages WHERE conversation = ?3 AND deleted = 0 AND"
        return try sql.page(start, of: "id", limit: limit, select, [conversation]) { message in
            var json = message.bytes(1)
            json.append(message.version(2))
            return (message.int64(0), json)
        }
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

}

extension MessageRow {
    init(
        _ row: Int64,
        conversation: Int64,
        author: Int64,
        clientID: String? = nil,
        text: String,
        image: JSONValue? = nil,
        sent: WallTime,
        edited: WallTime? = nil,
        deleted: WallTime? = nil
    ) {
        let members = JSONObject([
            "id": EntityID(.message, row).json, "conversationId": EntityID(.conversation, conversation).json,
            "authorId": EntityID(.profile, author).json, "clientId": clientID.map { .string($0) } ?? .null,
            "text": .string(text), "image": image, "sentAt": sent.json, "editedAt": edited?.json ?? .null,
        ])
        self.init(
            row: row,
            conversation: conversation,
            author: author,
            members: members,
            isDeleted: deleted != nil,
            version: 1,
            updated: deleted ?? edited ?? sent
        )
    }
}
