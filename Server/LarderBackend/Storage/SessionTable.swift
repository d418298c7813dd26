import LarderCoding
import LarderSQLite
import LarderTime

/// The session that an access token opens.
package struct SessionRow: Sendable, Hashable {
    /// The session, shared by all grants of one sign-in.
    let row: Int64
    package let user: Int64
    /// The handle of the user; nil for one that does not exist.
    package let handle: String?
    /// Nil for tokens of fixtures, which do not expire.
    let accessExpires: WallTime?

    func isValid(at now: WallTime) -> Bool { accessExpires.map { now < $0 } ?? true }

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
struct SessionTable {
    let sql: SQL

    static func digest(_ token: some StringProtocol) -> [UInt8] { SHA256.hash(Array(token.utf8)) }

    /// Creates a session with its first grant.
    func add(user: Int64, _ grant: NewGrant, at: WallTime) throws(SQLiteError) {
        let session = try sql.insert("INSERT INTO sessions (user, created) VALUES (?, ?)", [user, at])
        try add(grant, to: session, parent: nil)
    }

    /// Exchanges a refresh token for a new grant of the same session. Its access token is revoked; those of other grants are
    /// not.
    func exchange(_ held: RefreshGrant, for grant: NewGrant, at now: WallTime) throws(SQLiteError) {
        try sql.run(
            "UPDATE grants SET exchanged = ifnull(exchanged, ?), access = NULL, access_expires = NULL WHERE id = ?",
            [now, held.row]
        )
        try add(grant, to: held.session, parent: held.row)
    }

    private func add(_ grant: NewGrant, to session: Int64, parent: Int64?) throws(SQLiteError) {
        let refresh = grant.refresh.map { Self.digest($0) }
        try sql.run(
            """
            INSERT INTO grants (session, parent, access, access_expires, refresh, refresh_expires)
            VALUES (?, ?, ?, ?, ?, ?)
            """,
            [session, parent, Self.digest(grant.access), grant.accessExpires, refresh, grant.refreshExpires]
        )
    }

    func find(access: [UInt8]) throws(SQLiteError) -> SessionRow? {
        try sql.first(
            """
            SELECT sessions.id, sessions.user, grants.access_expires, people.name
            FROM grants JOIN sessions ON sessions.id = grants.session
            LEFT JOIN entities people ON people.kind = 1 AND people.id = sessions.user AND people.deleted = 0
            WHERE grants.access = ?
            """,
            [access]
        ) { row in
            SessionRow(
                row: row.int64(0),
                user: row.int64(1),
                handle: row.isNull(3) ? nil : row.text(3),
                accessExpires: row.isNull(2) ? nil : row.time(2)
            )
        }
    }

    /// The grant of a refresh token, exchanged or not.
    func find(refresh: [UInt8]) throws(SQLiteError) -> RefreshGrant? {
        try sql.first(
            """
            SELECT held.id, held.session, sessions.user, held.refresh_expires, held.exchanged,
                EXISTS (SELECT 1 FROM grants WHERE parent = held.id AND exchanged IS NOT NULL)
            FROM grants AS held JOIN sessions ON sessions.id = held.session WHERE held.refresh = ?
            """,
            [refresh]
        ) { row in
            RefreshGrant(
                row: row.int64(0),
                session: row.int64(1),
                user: row.int64(2),
                expires: row.isNull(3) ? nil : row.time(3),
                exchanged: row.isNull(4) ? nil : row.time(4),
                isAncestor: row.bool(5)
            )
        }
    }

    /// Whether a session has not ended.
    func has(_ session: Int64) throws(SQLiteError) -> Bool {
        try sql.first("SELECT 1 FROM sessions WHERE id = ?", [session]) { _ in true } ?? false
    }

    /// Deletes a session with all its grants.
    func delete(_ session: Int64) throws(SQLiteError) { try sql.run("DELETE FROM sessions WHERE id = ?", [session]) }

    /// Deletes grants with expired refresh tokens, and sessions without other grants. Cost: a full scan.
    func deleteExpired(at now: WallTime) throws(SQLiteError) {
        try sql.run("DELETE FROM grants WHERE refresh_expires <= ?", [now])
        try sql.run("DELETE FROM sessions WHERE id NOT IN (SELECT session FROM grants)")
    }
}
