import LarderSQLite
import LarderTime

/// What one transaction did, gathered while it runs: the changes to announce once it is committed.
struct Commit {
    /// The time of everything that the transaction writes.
    let now: WallTime
    private(set) var changes: [ChangeRow] = []
    private(set) var touched: Dependencies = []

    init(now: WallTime) { self.now = now }

    /// Writes the change-feed row of an entity, in the transaction that changed it.
    mutating func record(
        _ kind: EntityKind,
        _ row: Int64,
        deleted: Bool = false,
        audience: Audience,
        version: Int64,
        in store: Store
    ) throws(SQLiteError) {
        let entity = EntityID(kind, row)
        let position = try store.changes.append(
            entity,
            deleted: deleted,
            audience: audience,
            version: version,
            at: now,
            in: store.database
        )
        changes.append(
            ChangeRow(
                position: position,
                entity: entity,
                isDeleted: deleted,
                audience: audience,
                at: now,
                version: version
            )
        )
        touched.formUnion(Dependencies(kind))
    }

    /// Notes that a part of the state changed that the change feed does not tell of.
    mutating func touch(_ dependencies: Dependencies) { touched.formUnion(dependencies) }
}
