import LarderSQLite
import LarderTime

/// A reply stored under an idempotency key.
struct StoredReply {
    let fingerprint: [UInt8]
    let status: Int
    /// `Location` and `ETag` lines as they were sent; dates and rate limits are not stored.
    let fields: [UInt8]
    let body: [UInt8]
}

/// Idempotency keys and their first replies, stored in the transaction of the effect
/// (draft-ietf-httpapi-idempotency-key-header).
final class IdempotencyTable {
    /// How long a key is kept.
    static let lifetime: Duration = .seconds(24 * 60 * 60)

    private let select: Statement
    private let insert: Statement
    private let prune: Statement

    init(_ database: Database) throws(SQLiteError) {
        select = try database.prepare(
            """
            SELECT fingerprint, status, fields, body FROM idempotency
            WHERE user = ? AND route = ? AND key = ? AND created > ?
            """
        )
        insert = try database.prepare(
            """
            INSERT OR REPLACE INTO idempotency (user, route, key, fingerprint, status, fields, body, created)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?)
            """
        )
        prune = try database.prepare(
            """
            DELETE FROM idempotency WHERE (user, route, key) IN
            (SELECT user, route, key FROM idempotency WHERE created <= ? LIMIT 16)
            """
        )
    }

    func find(user: Int64, route: String, key: String, now: WallTime) throws(SQLiteError) -> StoredReply? {
        defer { select.reset() }
        try select.bind(user, at: 1)
        try select.bind(route, at: 2)
        try select.bind(key, at: 3)
        try select.bind((now - Self.lifetime).milliseconds, at: 4)
        guard try select.step() else { return nil }
        return StoredReply(
            fingerprint: select.bytes(0),
            status: Int(select.int64(1)),
            fields: select.bytes(2),
            body: select.bytes(3)
        )
    }

    func store(
        _ reply: StoredReply,
        user: Int64,
        route: String,
        key: String,
        now: WallTime
    ) throws(SQLiteError) {
        try insert.bind(user, at: 1)
        try insert.bind(route, at: 2)
        try insert.bind(key, at: 3)
        try insert.bind(reply.fingerprint, at: 4)
        try insert.bind(Int64(reply.status), at: 5)
        try insert.bind(reply.fields, at: 6)
        try insert.bind(reply.body, at: 7)
        try insert.bind(now.milliseconds, at: 8)
        try insert.run()
        // Each write removes a few expired keys: none is kept much longer than a day, and no write removes many.
        try prune.bind((now - Self.lifetime).milliseconds, at: 1)
        try prune.run()
    }
}
