import LarderCoding
import LarderSQLite
import LarderTime

/// A signed-in device.
struct SessionRow: Sendable, Hashable {
    let row: Int64
    let user: Int64
    /// Nil for the tokens of fixtures, which do not expire by themselves.
    let accessExpires: WallTime?

    /// Whether the token is one of those that the documentation names.
    var isDeveloper: Bool { accessExpires == nil }
}

/// Sessions. Tokens are kept as SHA-256 digests: a copied database opens nothing.
final class SessionTable {
    private let insert: Statement
    private let byAccess: Statement
    private let byRefresh: Statement
    private let bySpent: Statement
    private let rotate: Statement
    private let spend: Statement
    private let delete: Statement
    private let deleteExpired: Statement

    init(_ database: Database) throws(SQLiteError) {
        insert = try database.prepare(
            """
            INSERT INTO sessions (user, access, access_expires, refresh, refresh_expires, created)
            VALUES (?, ?, ?, ?, ?, ?)
            """
        )
        byAccess = try database.prepare("SELECT id, user, access_expires FROM sessions WHERE access = ?")
        byRefresh = try database.prepare("SELECT id, user, refresh_expires FROM sessions WHERE refresh = ?")
        bySpent = try database.prepare("SELECT session FROM spent_refresh_tokens WHERE refresh = ?")
        rotate = try database.prepare(
            """
            UPDATE sessions SET access = ?, access_expires = ?, refresh = ?, refresh_expires = ? WHERE id = ?
            """
        )
        spend = try database.prepare("INSERT OR IGNORE INTO spent_refresh_tokens (refresh, session) VALUES (?, ?)")
        delete = try database.prepare("DELETE FROM sessions WHERE id = ?")
        deleteExpired = try database.prepare("DELETE FROM sessions WHERE refresh_expires <= ?")
    }

    static func digest(_ token: some StringProtocol) -> [UInt8] { SHA256.hash(Array(token.utf8)) }

    func add(
        user: Int64,
        access: String,
        accessExpires: WallTime?,
        refresh: String?,
        refreshExpires: WallTime?,
        at: WallTime
    ) throws(SQLiteError) {
        try insert.bind(user, at: 1)
        try insert.bind(Self.digest(access), at: 2)
        try insert.bind(accessExpires?.milliseconds, at: 3)
        try insert.bind(refresh.map { Self.digest($0) }, at: 4)
        try insert.bind(refreshExpires?.milliseconds, at: 5)
        try insert.bind(at.milliseconds, at: 6)
        try insert.run()
    }

    func find(access: [UInt8]) throws(SQLiteError) -> SessionRow? {
        defer { byAccess.reset() }
        try byAccess.bind(access, at: 1)
        guard try byAccess.step() else { return nil }
        return Self.read(byAccess)
    }

    /// The session of a refresh token; the time in it is when the refresh token expires.
    func find(refresh: [UInt8]) throws(SQLiteError) -> SessionRow? {
        defer { byRefresh.reset() }
        try byRefresh.bind(refresh, at: 1)
        guard try byRefresh.step() else { return nil }
        return Self.read(byRefresh)
    }

    /// The session that a refresh token belonged to before it was exchanged.
    func find(spentRefresh: [UInt8]) throws(SQLiteError) -> Int64? {
        defer { bySpent.reset() }
        try bySpent.bind(spentRefresh, at: 1)
        return try bySpent.step() ? bySpent.int64(0) : nil
    }

    /// Exchanges the tokens of a session; the old refresh token is remembered as spent.
    func rotate(
        _ session: Int64,
        spent: [UInt8],
        access: String,
        accessExpires: WallTime,
        refresh: String,
        refreshExpires: WallTime
    ) throws(SQLiteError) {
        try spend.bind(spent, at: 1)
        try spend.bind(session, at: 2)
        try spend.run()
        try rotate.bind(Self.digest(access), at: 1)
        try rotate.bind(accessExpires.milliseconds, at: 2)
        try rotate.bind(Self.digest(refresh), at: 3)
        try rotate.bind(refreshExpires.milliseconds, at: 4)
        try rotate.bind(session, at: 5)
        try rotate.run()
    }

    func delete(_ session: Int64) throws(SQLiteError) {
        try delete.bind(session, at: 1)
        try delete.run()
    }

    /// Forgets the sessions that nothing can continue any more. Cost: it looks at all of them.
    func deleteExpired(at now: WallTime) throws(SQLiteError) {
        try deleteExpired.bind(now.milliseconds, at: 1)
        try deleteExpired.run()
    }

    private static func read(_ statement: Statement) -> SessionRow {
        SessionRow(
            row: statement.int64(0),
            user: statement.int64(1),
            accessExpires: statement.isNull(2) ? nil : WallTime(milliseconds: statement.int64(2))
        )
    }
}
