import LarderCoding
import LarderSQLite
import LarderTime

/// One change of the change feed: the latest one of an entity.
struct ChangeRow: Sendable {
    let position: Int64
    let entity: EntityID
    /// That of the entity (`EntityRow.list`).
    let list: Int64
    let isDeleted: Bool
    let at: WallTime
    let version: Int64
}

/// The effects of one transaction, collected while it runs and announced after its commit.
struct Commit {
    /// The timestamp of everything that the transaction writes.
    let now: WallTime
    private(set) var changes: [ChangeRow] = []

    init(now: WallTime) { self.now = now }

    /// Writes a new entity.
    mutating func add(_ entity: EntityRow, to store: Store) throws(SQLiteError) {
        changes.append(try store.entities.save(entity))
    }

    /// Writes the next version of an entity.
    mutating func save(_ entity: EntityRow, in store: Store) throws(SQLiteError) {
        var next = entity
        next.version += 1
        next.updated = now
        changes.append(try store.entities.save(next))
    }

    /// Leaves a tombstone, which has only the identity of the entity.
    mutating func delete(_ entity: EntityRow, in store: Store) throws(SQLiteError) {
        var tombstone = entity
        tombstone.isDeleted = true
        tombstone.members = JSONObject(entity.members.members.filter { $0.name == "id" })
        try save(tombstone, in: store)
    }
}
