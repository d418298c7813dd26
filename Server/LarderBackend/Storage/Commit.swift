import LarderSQLite
import LarderTime

/// The effects of one transaction, collected while it runs and announced after its commit.
struct Commit {
    /// The timestamp of everything that the transaction writes.
    let now: WallTime
    private(set) var changes: [ChangeRow] = []

    init(now: WallTime) { self.now = now }

    /// Writes an entity's row of the change feed, in the transaction that changed the entity.
    mutating func record(
        _ kind: EntityKind,
        _ row: Int64,
        deleted: Bool = false,
        audience: Audience,
        version: Int64,
        in store: Store
    ) throws(SQLiteError) {
        changes.append(
            try store.changes.append(kind, row, deleted: deleted, audience: audience, at: now, version: version)
        )
    }
}
