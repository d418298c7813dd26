import LarderEngine
import LarderSQLite
import LarderTime

/// Idempotency keys and their first replies, stored in the transaction of the effect
/// (draft-ietf-httpapi-idempotency-key-header).
struct IdempotencyTable {
    /// How long a key is kept.
    static let lifetime: Duration = .seconds(24 * 60 * 60)

    let sql: SQL

    func find(user: Int64, route: String, key: String, now: WallTime) throws(SQLiteError) -> (
        fingerprint: [UInt8], reply: Reply
    )? {
        try sql.first(
            """
            SELECT fingerprint, head, body FROM idempotency
            WHERE user = ? AND route = ? AND key = ? AND created > ?
            """,
            [user, route, key, now - Self.lifetime]
        ) { ($0.bytes(0), Reply(ReplyHead(stored: $0.bytes(1)), body: .bytes($0.bytes(2)))) }
    }

    func store(
        _ reply: Reply,
        _ fingerprint: [UInt8],
        user: Int64,
        route: String,
        key: String,
        now: WallTime
    ) throws(SQLiteError) {
        try sql.run(
            """
            INSERT OR REPLACE INTO idempotency (user, route, key, fingerprint, head, body, created)
            VALUES (?, ?, ?, ?, ?, ?, ?)
            """,
            [user, route, key, fingerprint, reply.head.bytes, reply.bytes, now]
        )
        // Each write removes a few expired keys: none is kept much longer than a day, and no write removes many.
        try sql.run(
            """
            DELETE FROM idempotency WHERE (user, route, key) IN
            (SELECT user, route, key FROM idempotency WHERE created <= ? LIMIT 16)
            """,
            [now - Self.lifetime]
        )
    }
}
