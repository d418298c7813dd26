import LarderEngine
import LarderSQLite
import LarderTime

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
            SELECT fingerprint, head, body FROM idempotency
            WHERE user = ? AND route = ? AND key = ? AND created > ?
            """
        )
        insert = try database.prepare(
            """
            INSERT OR REPLACE INTO idempotency (user, route, key, fingerprint, head, body, created)
            VALUES (?, ?, ?, ?, ?, ?, ?)
            """
        )
        prune = try database.prepare(
            """
            DELETE FROM idempotency WHERE (user, route, key) IN
            (SELECT user, route, key FROM idempotency WHERE created <= ? LIMIT 16)
            """
        )
    }

    func find(user: Int64, route: String, key: String, now: WallTime) throws(SQLiteError) -> (
        fingerprint: [UInt8], reply: Reply
    )? {
        defer { select.reset() }
        try select.bind(user, at: 1)
        try select.bind(route, at: 2)
        try select.bind(key, at: 3)
        try select.bind((now - Self.lifetime).milliseconds, at: 4)
        guard try select.step() else { return nil }
        return (select.bytes(0), Reply(ReplyHead(stored: select.bytes(1)), body: .bytes(select.bytes(2))))
    }

    func store(
        _ reply: Reply,
        _ fingerprint: [UInt8],
        user: Int64,
        route: String,
        key: String,
        now: WallTime
    ) throws(SQLiteError) {
        try insert.bind(user, at: 1)
        try insert.bind(route, at: 2)
        try insert.bind(key, at: 3)
        try insert.bind(fingerprint, at: 4)
        try insert.bind(reply.head.bytes, at: 5)
        try insert.bind(reply.bytes, at: 6)
        try insert.bind(now.milliseconds, at: 7)
        try insert.run()
        // Each write removes a few expired keys: none is kept much longer than a day, and no write removes many.
        try prune.bind((now - Self.lifetime).milliseconds, at: 1)
        try prune.run()
    }
}
