import LarderSQLite
import LarderTime

/// One row of the change feed.
struct ChangeRow: Sendable {
    let position: Int64
    let entity: EntityID
    let isDeleted: Bool
    let audience: Audience
    let at: WallTime
    let version: Int64
}

/// The change feed's table: the latest change of every entity, in commit order.
///
/// An entity appears once, at the position of its last change. The table therefore has one row for each entity or tombstone,
/// and a reader that starts at the beginning reads the whole state (like CouchDB's `_changes`).
final class ChangeTable {
    private let record: Statement
    private let scan: Statement
    private let newest: Statement
    private let expired: Statement
    private let prune: Statement

    init(_ database: Database) throws(SQLiteError) {
        record = try database.prepare(
            """
            INSERT OR REPLACE INTO changes (kind, entity, deleted, audience, at, version) VALUES (?, ?, ?, ?, ?, ?)
            """
        )
        scan = try database.prepare(
            """
            SELECT position, kind, entity, deleted, audience, at, version FROM changes WHERE position > ?
            ORDER BY position LIMIT ?
            """
        )
        newest = try database.prepare("SELECT seq FROM sqlite_sequence WHERE name = 'changes'")
        expired = try database.prepare("SELECT max(position) FROM changes WHERE deleted = 1 AND at < ?")
        prune = try database.prepare("DELETE FROM changes WHERE deleted = 1 AND at < ?")
    }

    /// Records that an entity changed, and returns the position of the change.
    func append(
        _ entity: EntityID,
        deleted: Bool,
        audience: Audience,
        version: Int64,
        at: WallTime,
        in database: Database
    ) throws(SQLiteError) -> Int64 {
        try record.bind(entity.kind.rawValue, at: 1)
        try record.bind(entity.row, at: 2)
        try record.bind(deleted ? 1 : 0 as Int64, at: 3)
        try record.bind(audience.stored, at: 4)
        try record.bind(at.milliseconds, at: 5)
        try record.bind(version, at: 6)
        try record.run()
        return database.lastInsertRowID
    }

    /// The rows after a position, oldest first.
    func rows(after position: Int64, limit: Int) throws(SQLiteError) -> [ChangeRow] {
        defer { scan.reset() }
        try scan.bind(position, at: 1)
        try scan.bind(Int64(limit), at: 2)
        var rows: [ChangeRow] = []
        while try scan.step() {
            guard let kind = EntityKind(rawValue: scan.int64(1)) else { continue }
            rows.append(
                ChangeRow(
                    position: scan.int64(0),
                    entity: EntityID(kind, scan.int64(2)),
                    isDeleted: scan.int64(3) != 0,
                    audience: Audience(stored: scan.int64(4)),
                    at: WallTime(milliseconds: scan.int64(5)),
                    version: scan.int64(6)
                )
            )
        }
        return rows
    }

    /// The position of the newest change ever recorded; 0 if there is none.
    func newestPosition() throws(SQLiteError) -> Int64 {
        defer { newest.reset() }
        return try newest.step() ? newest.int64(0) : 0
    }

    /// The position of the newest tombstone that is older than `horizon`.
    func newestTombstone(before horizon: WallTime) throws(SQLiteError) -> Int64? {
        defer { expired.reset() }
        try expired.bind(horizon.milliseconds, at: 1)
        guard try expired.step(), !expired.isNull(0) else { return nil }
        return expired.int64(0)
    }

    /// Removes the tombstones that are older than `horizon`.
    func forgetTombstones(before horizon: WallTime) throws(SQLiteError) {
        try prune.bind(horizon.milliseconds, at: 1)
        try prune.run()
    }
}
