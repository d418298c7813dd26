import LarderSQLite
import LarderTime

/// The state of one world: its database and the prepared statements over it.
///
/// Not safe for concurrent use: it is confined by its world's `Mutex`, which serialises writes and lets reads see whole commits
/// only.
final class Store {
    let database: Database
    private let sql: SQL
    /// The identity of this history, part of every change token.
    private(set) var instance: UInt64
    /// The histories that this one continues, each with the last common position.
    private(set) var lineage: [UInt64: Int64] = [:]

    var meta: MetaTable { MetaTable(sql: sql) }
    var changes: ChangeTable { ChangeTable(sql: sql) }
    var profiles: ProfileTable { ProfileTable(sql: sql) }
    var posts: PostTable { PostTable(sql: sql) }
    var likes: LikeTable { LikeTable(sql: sql) }
    var accounts: AccountTable { AccountTable(sql: sql) }
    var ledger: LedgerTable { LedgerTable(sql: sql) }
    var conversations: ConversationTable { ConversationTable(sql: sql) }
    var messages: MessageTable { MessageTable(sql: sql) }
    var tasks: TaskTable { TaskTable(sql: sql) }
    var documents: DocumentTable { DocumentTable(sql: sql) }
    var sessions: SessionTable { SessionTable(sql: sql) }
    var idempotency: IdempotencyTable { IdempotencyTable(sql: sql) }
    var uploads: UploadTable { UploadTable(sql: sql) }

    /// Takes ownership of a database that has the schema.
    ///
    /// - Parameter instance: the identity for a database that has none yet.
    init(_ database: Database, instance fresh: UInt64) throws(SQLiteError) {
        self.database = database
        sql = SQL(database)
        let meta = MetaTable(sql: sql)
        if let stored = try meta.integer(.instance) {
            instance = UInt64(bitPattern: stored)
        } else {
            instance = fresh
            try meta.set(.instance, Int64(bitPattern: fresh))
        }
        let ancestors = try sql.all("SELECT instance, until FROM lineage") { ($0.int64(0), $0.int64(1)) }
        for (ancestor, until) in ancestors { lineage[UInt64(bitPattern: ancestor)] = until }
    }

    /// Continues as a separate history: tokens up to now stay valid, later ones are valid here only.
    func branch(_ fresh: UInt64) throws(SQLiteError) {
        try share(instance)
        try meta.set(.instance, Int64(bitPattern: fresh))
        instance = fresh
    }

    /// Continues as a history that shares nothing with earlier ones; returns those.
    func beginAnew(_ fresh: UInt64) throws -> Set<UInt64> {
        let ended = Set(lineage.keys).union([instance])
        try database.transaction {
            try database.execute("DELETE FROM lineage")
            try meta.set(.instance, Int64(bitPattern: fresh))
        }
        instance = fresh
        lineage = [:]
        return ended
    }

    /// Records that another history equals this one up to now.
    func share(_ other: UInt64) throws(SQLiteError) {
        let until = try changes.newestPosition()
        try sql.run(
            "INSERT OR REPLACE INTO lineage (instance, until) VALUES (?, ?)",
            [Int64(bitPattern: other), until]
        )
        lineage[other] = until
    }

    /// Whether everything that a token of that history covers is part of this history.
    func shares(_ instance: UInt64, upTo position: Int64) -> Bool {
        instance == self.instance || position <= lineage[instance] ?? -1
    }

    /// Appends an entity as `viewer` sees it; nil if it does not exist.
    func append(_ entity: EntityID, viewer: Int64, to bytes: inout [UInt8]) throws(SQLiteError) -> EntityVersion? {
        switch entity.kind {
        case .profile: return try profiles.append(entity.row, to: &bytes)
        case .post: return try posts.append(entity.row, viewer: viewer, to: &bytes)?.version
        case .account:
            guard let account = try accounts.find(entity.row) else { return nil }
            bytes += account.json
            return EntityVersion(account.version, account.updated)
        case .transaction: return try ledger.append(entity.row, to: &bytes)
        case .transfer:
            guard let transfer = try ledger.transfer(entity.row) else { return nil }
            bytes += transfer.json
            return EntityVersion(1, transfer.at)
        case .conversation: return try conversations.append(entity.row, to: &bytes)
        case .message: return try messages.append(entity.row, to: &bytes)
        case .task: return try tasks.append(entity.row, to: &bytes)
        case .document: return try documents.append(entity.row, to: &bytes)
        }
    }

    /// An entity as `viewer` sees it; empty if it does not exist.
    func json(_ kind: EntityKind, _ row: Int64, viewer: Int64 = 0) throws(SQLiteError) -> [UInt8] {
        var json: [UInt8] = []
        _ = try append(EntityID(kind, row), viewer: viewer, to: &json)
        return json
    }

    /// Removes tombstones older than `horizon` and records their newest position in the same transaction: a token from before
    /// that must lead to a resync.
    func forgetTombstones(before horizon: WallTime) throws {
        guard let newest = try changes.newestTombstone(before: horizon) else { return }
        try database.transaction {
            try meta.set(.tombstoneHorizon, max(newest, try meta.integer(.tombstoneHorizon) ?? 0))
            try changes.forgetTombstones(before: horizon)
            try documents.forgetDeleted()
        }
    }

    /// The part of the change feed that a reader may see.
    func scope(of viewer: Int64) throws(SQLiteError) -> ReaderScope {
        viewer == 0 ? .anonymous : ReaderScope(viewer: viewer, conversations: try conversations.of(viewer))
    }
}
