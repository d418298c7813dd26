import LarderCoding
import LarderSQLite
import LarderTime

/// The session that an access token opens.
package struct SessionRow: Sendable, Hashable {
    /// The session, shared by all grants of one sign-in.
    let row: Int64
    package let user: Int64
    /// Nil for tokens of fixtures, which do not expire.
    let accessExpires: WallTime?

    /// Whether the token is a documented developer token.
    var isDeveloper: Bool { accessExpires == nil }
}

/// An issued refresh token. A grant is a refresh token and an access token.
struct RefreshGrant: Sendable, Hashable {
    let row: Int64
    let session: Int64
    let user: Int64
    let expires: WallTime?
    /// When the token was first exchanged; nil if it was not.
    let exchanged: WallTime?
    /// Whether a token that was issued in exchange for it was exchanged too.
    let isAncestor: Bool

    /// Whether presenting the token counts as reuse of a stolen token (RFC 9700 §4.14.2).
    ///
    /// The reply to an exchange can be lost, and two processes can exchange one token at the same time. A token may therefore
    /// be exchanged again within `grace` of its first exchange, unless one of its successors was exchanged, because then its
    /// holder has received a later one. The cost: a stolen token that is used within this time opens a second session that is
    /// not detected.
    func isReuse(at now: WallTime, grace: Duration) -> Bool {
        guard let exchanged else { return false }
        // A clock that was set back does not extend the grace period.
        return isAncestor || now >= exchanged + grace || now < exchanged - grace
    }
}

/// The tokens of a grant and their expiry times, as issued.
struct NewGrant: Sendable {
    let access: String
    let accessExpires: WallTime?
    let refresh: String?
    let refreshExpires: WallTime?
}

/// Sessions and their grants. Tokens are stored as SHA-256 digests, so that a copied database reveals none.
final class SessionTable {
    private let database: Database
    private let insertSession: Statement
    private let insertGrant: Statement
    private let byAccess: Statement
    private let byRefresh: Statement
    private let exchange: Statement
    private let delete: Statement
    private let deleteExpired: Statement
    private let deleteEmpty: Statement

    init(_ database: Database) throws(SQLiteError) {
        self.database = database
        insertSession = try database.prepare("INSERT INTO sessions (user, created) VALUES (?, ?)")
        insertGrant = try database.prepare(
            """
            INSERT INTO grants (session, parent, access, access_expires, refresh, refresh_expires)
            VALUES (?, ?, ?, ?, ?, ?)
            """
        )
        byAccess = try database.prepare(
            """
            SELECT sessions.id, sessions.user, grants.access_expires
            FROM grants JOIN sessions ON sessions.id = grants.session WHERE grants.access = ?
            """
        )
        byRefresh = try database.prepare(
            """
            SELECT held.id, held.session, sessions.user, held.refresh_expires, held.exchanged,
                EXISTS (SELECT 1 FROM grants WHERE parent = held.id AND exchanged IS NOT NULL)
            FROM grants AS held JOIN sessions ON sessions.id = held.session WHERE held.refresh = ?
            """
        )
        exchange = try database.prepare(
            "UPDATE grants SET exchanged = ifnull(exchanged, ?), access = NULL, access_expires = NULL WHERE id = ?"
        )
        delete = try database.prepare("DELETE FROM sessions WHERE id = ?")
        deleteExpired = try database.prepare("DELETE FROM grants WHERE refresh_expires <= ?")
        deleteEmpty = try database.prepare("DELETE FROM sessions WHERE id NOT IN (SELECT session FROM grants)")
    }

    static func digest(_ token: some StringProtocol) -> [UInt8] { SHA256.hash(Array(token.utf8)) }

    /// Creates a session with its first grant.
    func add(user: Int64, _ grant: NewGrant, at: WallTime) throws(SQLiteError) {
        try insertSession.bind(user, at: 1)
        try insertSession.bind(at.milliseconds, at: 2)
        try insertSession.run()
        try add(grant, to: database.lastInsertRowID, parent: nil)
    }

    /// Exchanges a refresh token for a new grant of the same session. Its access token is revoked; those of other grants are
    /// not.
    func exchange(_ held: RefreshGrant, for grant: NewGrant, at now: WallTime) throws(SQLiteError) {
        try exchange.bind(now.milliseconds, at: 1)
        try exchange.bind(held.row, at: 2)
        try exchange.run()
        try add(grant, to: held.session, parent: held.row)
    }

    private func add(_ grant: NewGrant, to session: Int64, parent: Int64?) throws(SQLiteError) {
        try insertGrant.bind(session, at: 1)
        try insertGrant.bind(parent, at: 2)
        try insertGrant.bind(Self.digest(grant.access), at: 3)
        try insertGrant.bind(grant.accessExpires?.milliseconds, at: 4)
        try insertGrant.bind(grant.refresh.map { Self.digest($0) }, at: 5)
        try insertGrant.bind(grant.refreshExpires?.milliseconds, at: 6)
        try insertGrant.run()
    }

    func find(access: [UInt8]) throws(SQLiteError) -> SessionRow? {
        defer { byAccess.reset() }
        try byAccess.bind(access, at: 1)
        guard try byAccess.step() else { return nil }
        return SessionRow(row: byAccess.int64(0), user: byAccess.int64(1), accessExpires: Self.time(byAccess, 2))
    }

    /// The grant of a refresh token, exchanged or not.
    func find(refresh: [UInt8]) throws(SQLiteError) -> RefreshGrant? {
        defer { byRefresh.reset() }
        try byRefresh.bind(refresh, at: 1)
        guard try byRefresh.step() else { return nil }
        return RefreshGrant(
            row: byRefresh.int64(0),
            session: byRefresh.int64(1),
            user: byRefresh.int64(2),
            expires: Self.time(byRefresh, 3),
            exchanged: Self.time(byRefresh, 4),
            isAncestor: byRefresh.int64(5) != 0
        )
    }

    /// Deletes a session with all its grants.
    func delete(_ session: Int64) throws(SQLiteError) {
        try delete.bind(session, at: 1)
        try delete.run()
    }

    /// Deletes grants with expired refresh tokens, and sessions without other grants. Cost: a full scan.
    func deleteExpired(at now: WallTime) throws(SQLiteError) {
        try deleteExpired.bind(now.milliseconds, at: 1)
        try deleteExpired.run()
        try deleteEmpty.run()
    }

    private static func time(_ statement: Statement, _ column: Int32) -> WallTime? {
        statement.isNull(column) ? nil : WallTime(milliseconds: statement.int64(column))
    }
}
