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
final class MessageTable {
    private let insert: Statement
    private let select: Statement
    private let selectByClientID: Statement
    private let update: Statement
    private let older: Statement
    private let newer: Statement
    private let bounds: Statement
    private let next: Statement

    init(_ database: Database) throws(SQLiteError) {
        insert = try database.prepare(
            """
            INSERT INTO messages (id, conversation, author, client_id, head, deleted, version, updated)
            VALUES (?, ?, ?, ?, ?, ?, 1, ?)
            """
        )
        select = try database.prepare(
            "SELECT id, conversation, author, head, deleted, version, updated FROM messages WHERE id = ?"
        )
        selectByClientID = try database.prepare(
            "SELECT id FROM messages WHERE conversation = ? AND author = ? AND client_id = ?"
        )
        update = try database.prepare(
            "UPDATE messages SET head = ?, deleted = ?, version = ?, updated = ? WHERE id = ?"
        )
        older = try database.prepare(
            """
            SELECT id, head, version, updated FROM messages WHERE conversation = ? AND deleted = 0 AND id < ?
            ORDER BY id DESC LIMIT ?
            """
        )
        newer = try database.prepare(
            """
            SELECT id, head, version, updated FROM messages WHERE conversation = ? AND deleted = 0 AND id > ?
            ORDER BY id LIMIT ?
            """
        )
        bounds = try database.prepare("SELECT min(id), max(id) FROM messages WHERE conversation = ? AND deleted = 0")
        next = try database.prepare("SELECT seq + 1 FROM sqlite_sequence WHERE name = 'messages'")
    }

    /// The row number of the next message.
    func nextRow() throws(SQLiteError) -> Int64 {
        defer { next.reset() }
        return try next.step() ? next.int64(0) : 1
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
        try insert.bind(row, at: 1)
        try insert.bind(conversation, at: 2)
        try insert.bind(author, at: 3)
        try insert.bind(clientID, at: 4)
        try insert.bind(head, at: 5)
        try insert.bind(isDeleted ? 1 : 0 as Int64, at: 6)
        try insert.bind(at.milliseconds, at: 7)
        try insert.run()
    }

    /// A message, including a deleted one.
    func find(_ row: Int64) throws -> MessageRow? {
        defer { select.reset() }
        try select.bind(row, at: 1)
        guard try select.step() else { return nil }
        return MessageRow(
            row: row,
            conversation: select.int64(1),
            author: select.int64(2),
            members: try EntityHead.decode(select.bytes(3)),
            isDeleted: select.int64(4) != 0,
            version: select.int64(5),
            updated: WallTime(milliseconds: select.int64(6))
        )
    }

    func row(conversation: Int64, author: Int64, clientID: String) throws(SQLiteError) -> Int64? {
        defer { selectByClientID.reset() }
        try selectByClientID.bind(conversation, at: 1)
        try selectByClientID.bind(author, at: 2)
        try selectByClientID.bind(clientID, at: 3)
        return try selectByClientID.step() ? selectByClientID.int64(0) : nil
    }

    func replace(_ message: MessageRow) throws(SQLiteError) {
        try update.bind(EntityHead.encode(message.members), at: 1)
        try update.bind(message.isDeleted ? 1 : 0 as Int64, at: 2)
        try update.bind(message.version, at: 3)
        try update.bind(message.updated.milliseconds, at: 4)
        try update.bind(message.row, at: 5)
        try update.run()
    }

    func extent(conversation: Int64) throws(SQLiteError) -> ClosedRange<Int64>? {
        defer { bounds.reset() }
        try bounds.bind(conversation, at: 1)
        guard try bounds.step(), !bounds.isNull(0) else { return nil }
        return bounds.int64(0)...bounds.int64(1)
    }

    /// Appends one message; nil if it does not exist or was deleted.
    func append(_ row: Int64, to bytes: inout [UInt8]) throws(SQLiteError) -> EntityVersion? {
        defer { select.reset() }
        try select.bind(row, at: 1)
        guard try select.step(), select.int64(4) == 0 else { return nil }
        let version = EntityVersion(select.int64(5), WallTime(milliseconds: select.int64(6)))
        select.append(3, to: &bytes)
        bytes.append(version: version.number, updated: version.updated)
        return version
    }

    /// The messages of a conversation that are not deleted, newest first: rows and JSON.
    func page(
        _ start: PageStart,
        conversation: Int64,
        limit: Int
    ) throws(SQLiteError) -> [(row: Int64, json: [UInt8])] {
        let statement: Statement
        let bound: Int64
        switch start {
        case .newest: (statement, bound) = (older, .max)
        case .after(let row): (statement, bound) = (older, row)
        case .before(let row): (statement, bound) = (newer, row)
        }
        defer { statement.reset() }
        try statement.bind(conversation, at: 1)
        try statement.bind(bound, at: 2)
        try statement.bind(Int64(limit), at: 3)
        var items: [(row: Int64, json: [UInt8])] = []
        while try statement.step() {
            var json: [UInt8] = []
            statement.append(1, to: &json)
            json.append(version: statement.int64(2), updated: WallTime(milliseconds: statement.int64(3)))
            items.append((statement.int64(0), json))
        }
        if statement === newer { items.reverse() }
        return items
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
