import LarderSQLite
import LarderTime

/// The state of one world: its database and the prepared statements over it.
///
/// Not safe for concurrent use: it is confined by its world's `Mutex`, which serialises writes and lets reads see whole commits
/// only.
final class Store {
    let database: Database
    let meta: MetaTable
    let changes: ChangeTable
    let profiles: ProfileTable
    let posts: PostTable
    let likes: LikeTable
    let accounts: AccountTable
    let ledger: LedgerTable
    let conversations: ConversationTable
    let messages: MessageTable
    let tasks: TaskTable
    let documents: DocumentTable
    let sessions: SessionTable
    let idempotency: IdempotencyTable
    let uploads: UploadTable
    /// The identity of this history, part of every change token.
    private(set) var instance: UInt64
    /// The histories that this one continues, each with the last common position.
    private(set) var lineage: [UInt64: Int64] = [:]

    /// Takes ownership of a database that has the schema.
    ///
    /// - Parameter instance: the identity for a database that has none yet.
    init(_ database: Database, instance fresh: UInt64) throws(SQLiteError) {
        self.database = database
        meta = try MetaTable(database)
        changes = try ChangeTable(database)
        profiles = try ProfileTable(database)
        posts = try PostTable(database)
        likes = try LikeTable(database)
        accounts = try AccountTable(database)
        ledger = try LedgerTable(database)
        conversations = try ConversationTable(database)
        messages = try MessageTable(database)
        tasks = try TaskTable(database)
        documents = try DocumentTable(database)
        sessions = try SessionTable(database)
        idempotency = try IdempotencyTable(database)
        uploads = try UploadTable(database)
        if let stored = try meta.integer(.instance) {
            instance = UInt64(bitPattern: stored)
        } else {
            instance = fresh
            try meta.set(.instance, Int64(bitPattern: fresh))
        }
        let ancestors = try database.prepare("SELECT instance, until FROM lineage")
        while try ancestors.step() { lineage[UInt64(bitPattern: ancestors.int64(0))] = ancestors.int64(1) }
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
        let insert = try database.prepare("INSERT OR REPLACE INTO lineage (instance, until) VALUES (?, ?)")
        try insert.bind(Int64(bitPattern: other), at: 1)
        try insert.bind(until, at: 2)
        try insert.run()
        lineage[other] = until
    }

    /// Whether everything that a token of that history covers is part of this history.
    func shares(_ instance: UInt64, upTo position: Int64) -> Bool {
        instance == self.instance || position <= lineage[instance] ?? -1
    }

    /// Appends an entity as `viewer` sees it; false if it does not exist.
    func append(_ entity: EntityID, viewer: Int64, to bytes: inout [UInt8]) throws(SQLiteError) -> Bool {
        switch entity.kind {
        case .profile: return try profiles.append(entity.row, to: &bytes) != nil
        case .post: return try posts.append(entity.row, viewer: viewer, to: &bytes) != nil
        case .account:
            guard let account = try accounts.find(entity.row) else { return false }
            account.append(to: &bytes)
            return true
        case .transaction: return try ledger.append(entity.row, to: &bytes)
        case .transfer:
            guard let transfer = try ledger.transfer(entity.row) else { return false }
            transfer.append(to: &bytes)
            return true
        case .conversation: return try conversations.append(entity.row, to: &bytes) != nil
        case .message: return try messages.append(entity.row, to: &bytes) != nil
        case .task: return try tasks.append(entity.row, to: &bytes) != nil
        case .document: return try documents.append(entity.row, to: &bytes)
        }
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
