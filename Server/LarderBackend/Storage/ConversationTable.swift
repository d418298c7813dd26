import LarderCoding
import LarderSQLite
import LarderTime

/// Conversations and their members.
final class ConversationTable {
    private let insert: Statement
    private let join: Statement
    private let select: Statement
    private let membership: Statement
    private let memberships: Statement
    private let touch: Statement
    private let page: Statement

    init(_ database: Database) throws(SQLiteError) {
        insert = try database.prepare(
            "INSERT INTO conversations (id, head, last_message, version, updated) VALUES (?, ?, NULL, 1, ?)"
        )
        join = try database.prepare("INSERT INTO members (user, conversation) VALUES (?, ?)")
        select = try database.prepare("SELECT head, last_message, version, updated FROM conversations WHERE id = ?")
        membership = try database.prepare("SELECT 1 FROM members WHERE user = ? AND conversation = ?")
        memberships = try database.prepare("SELECT conversation FROM members WHERE user = ?")
        touch = try database.prepare(
            """
            UPDATE conversations SET last_message = ?, version = version + 1, updated = ?
            WHERE id = ? RETURNING version
            """
        )
        page = try database.prepare(
            """
            SELECT c.id, c.head, c.last_message, c.version, c.updated FROM members m
            JOIN conversations c ON c.id = m.conversation WHERE m.user = ? AND m.conversation > ? ORDER BY c.id LIMIT ?
            """
        )
    }

    func add(_ row: Int64, members: JSONObject, users: [Int64], at: WallTime) throws(SQLiteError) {
        try insert.bind(row, at: 1)
        try insert.bind(EntityHead.encode(members), at: 2)
        try insert.bind(at.milliseconds, at: 3)
        try insert.run()
        for user in users {
            try join.bind(user, at: 1)
            try join.bind(row, at: 2)
            try join.run()
        }
    }

    func isMember(_ user: Int64, of conversation: Int64) throws(SQLiteError) -> Bool {
        defer { membership.reset() }
        try membership.bind(user, at: 1)
        try membership.bind(conversation, at: 2)
        return try membership.step()
    }

    /// The conversations of a person.
    func of(_ user: Int64) throws(SQLiteError) -> Set<Int64> {
        defer { memberships.reset() }
        try memberships.bind(user, at: 1)
        var rows: Set<Int64> = []
        while try memberships.step() { rows.insert(memberships.int64(0)) }
        return rows
    }

    /// Records activity in a conversation; returns its new version.
    func touch(_ row: Int64, lastMessage: Int64?, at: WallTime) throws(SQLiteError) -> Int64 {
        defer { touch.reset() }
        try touch.bind(lastMessage, at: 1)
        try touch.bind(at.milliseconds, at: 2)
        try touch.bind(row, at: 3)
        var version: Int64 = 0
        while try touch.step() { version = touch.int64(0) }
        return version
    }

    func append(_ row: Int64, to bytes: inout [UInt8]) throws(SQLiteError) -> EntityVersion? {
        defer { select.reset() }
        try select.bind(row, at: 1)
        guard try select.step() else { return nil }
        return Self.appendCurrent(select, first: 0, to: &bytes)
    }

    /// Appends a person's conversations in row order; returns the rows, at most `limit` + 1.
    func appendPage(
        of user: Int64,
        after row: Int64,
        limit: Int,
        to bytes: inout [UInt8]
    ) throws(SQLiteError) -> (rows: [Int64], hasMore: Bool) {
        defer { page.reset() }
        try page.bind(user, at: 1)
        try page.bind(row, at: 2)
        try page.bind(Int64(limit + 1), at: 3)
        var rows: [Int64] = []
        while try page.step() {
            if rows.count == limit { return (rows, true) }
            if !rows.isEmpty { bytes.append(UInt8(ascii: ",")) }
            rows.append(page.int64(0))
            _ = Self.appendCurrent(page, first: 1, to: &bytes)
        }
        return (rows, false)
    }

    private static func appendCurrent(_ statement: Statement, first: Int32, to bytes: inout [UInt8]) -> EntityVersion {
        let version = EntityVersion(statement.int64(first + 2), WallTime(milliseconds: statement.int64(first + 3)))
        statement.append(first, to: &bytes)
        bytes.append(",\"lastMessageId\":")
        if statement.isNull(first + 1) {
            bytes.append("null")
        } else {
            bytes.append(identifier: EntityID(.message, statement.int64(first + 1)))
        }
        bytes.append(version: version.number, updated: version.updated)
        return version
    }
}
