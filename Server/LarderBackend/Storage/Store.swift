import LarderSQLite
import LarderTime

/// The state of one world: its database and the prepared statements over it.
///
/// Not safe for concurrent use: it is confined by its world's `Mutex`, which serialises writes and lets reads see whole commits
/// only.
final class Store {
    let database: Database
    private let sql: SQL
    /// The identity of this history, part of every change token; 0 before its beginning.
    private(set) var instance: UInt64
    var meta: MetaTable { MetaTable(sql: sql) }
    var entities: EntityTable { EntityTable(sql: sql) }
    var likes: LikeTable { LikeTable(sql: sql) }
    var ledger: LedgerTable { LedgerTable(sql: sql) }
    var conversations: ConversationTable { ConversationTable(sql: sql) }
    var collections: CollectionTable { CollectionTable(sql: sql) }
    var sessions: SessionTable { SessionTable(sql: sql) }
    var idempotency: IdempotencyTable { IdempotencyTable(sql: sql) }
    var uploads: UploadTable { UploadTable(sql: sql) }

    /// Takes ownership of a database that has the schema.
    init(_ database: Database) throws(SQLiteError) {
        self.database = database
        sql = SQL(database)
        instance = UInt64(bitPattern: try MetaTable(sql: sql).integer(.instance) ?? 0)
    }

    /// Begins a history of its own: tokens of the one before lead to a resync.
    func begin(_ fresh: UInt64) throws(SQLiteError) {
        try meta.set(.instance, Int64(bitPattern: fresh))
        instance = fresh
    }

    /// An entity as `viewer` sees it, in a form; empty if it does not exist.
    func json(
        _ kind: EntityKind,
        _ row: Int64,
        viewer: Int64 = 0,
        form: ItemForm = .whole
    ) throws(SQLiteError) -> [UInt8] {
        var json: [UInt8] = []
        let id = EntityID(kind, row)
        guard let version = try entities.append(id, viewer: viewer, to: &json), form == .index else { return json }
        return EntityTable.indexEntry(id, version: version.number)
    }

    /// Removes tombstones older than `horizon` and records their newest position in the same transaction: a token from before
    /// that must lead to a resync.
    func forgetTombstones(before horizon: WallTime) throws {
        guard let newest = try entities.newestTombstone(before: horizon),
            try newest > meta.integer(.tombstoneHorizon) ?? 0
        else { return }
        try database.transaction {
            try meta.set(.tombstoneHorizon, newest)
            try entities.forgetTombstones(before: horizon)
        }
    }

    /// The part of the entities that a reader may see.
    func scope(of viewer: Int64) throws(SQLiteError) -> ReaderScope {
        guard viewer != 0 else { return .anonymous }
        let accounts = try sql.all("SELECT id FROM entities WHERE kind = 3 AND list = ?", [viewer]) { $0.int64(0) }
        return ReaderScope(viewer: viewer, conversations: try conversations.of(viewer), accounts: Set(accounts))
    }
}
