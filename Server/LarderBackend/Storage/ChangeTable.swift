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
struct ChangeTable {
    let sql: SQL

    /// Records that an entity changed; returns its row.
    @discardableResult func append(
        _ kind: EntityKind,
        _ row: Int64,
        deleted: Bool = false,
        audience: Audience,
        at: WallTime,
        version: Int64 = 1
    ) throws(SQLiteError) -> ChangeRow {
        let position = try sql.insert(
            """
            INSERT OR REPLACE INTO changes (kind, entity, deleted, audience, at, version) VALUES (?, ?, ?, ?, ?, ?)
            """,
            [kind.rawValue, row, deleted, audience.stored, at, version]
        )
        return ChangeRow(
            position: position,
            entity: EntityID(kind, row),
            isDeleted: deleted,
            audience: audience,
            at: at,
            version: version
        )
    }

    /// The rows after a position, oldest first.
    func rows(after position: Int64, limit: Int) throws(SQLiteError) -> [ChangeRow] {
        try sql.all(
            """
            SELECT position, kind, entity, deleted, audience, at, version FROM changes WHERE position > ?
            ORDER BY position LIMIT ?
            """,
            [position, limit]
        ) { row -> ChangeRow? in
            guard let kind = EntityKind(rawValue: row.int64(1)) else { return nil }
            return ChangeRow(
                position: row.int64(0),
                entity: EntityID(kind, row.int64(2)),
                isDeleted: row.bool(3),
                audience: Audience(stored: row.int64(4)),
                at: row.time(5),
                version: row.int64(6)
            )
        }.compactMap { $0 }
    }

    /// The position of the newest change ever recorded; 0 if there is none.
    func newestPosition() throws(SQLiteError) -> Int64 {
        try sql.integer("SELECT seq FROM sqlite_sequence WHERE name = 'changes'") ?? 0
    }

    /// The position of the newest tombstone that is older than `horizon`.
    func newestTombstone(before horizon: WallTime) throws(SQLiteError) -> Int64? {
        try sql.integer("SELECT max(position) FROM changes WHERE deleted = 1 AND at < ?", [horizon])
    }

    /// Removes the tombstones that are older than `horizon`.
    func forgetTombstones(before horizon: WallTime) throws(SQLiteError) {
        try sql.run("DELETE FROM changes WHERE deleted = 1 AND at < ?", [horizon])
    }
}
