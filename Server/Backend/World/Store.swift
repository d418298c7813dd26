import LarderSQLite
import LarderTime

/// The state of one world: its database and the prepared statements over it.
///
/// Not safe for concurrent use: it lives inside its world's `Mutex`, which makes the one writer that SQLite wants and lets
/// reads see whole commits only.
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
    let sessions: SessionTable
    let idempotency: IdempotencyTable
    /// The identity of this history, part of every change token.
    private(set) var instance: UInt64
    /// The histories that this one goes on from, each with the last position that both share.
    private(set) var lineage: [UInt64: Int64] = [:]

    /// Takes over a database whose schema is in place.
    ///
    /// - Parameter instance: the identity that a database which has none yet is given.
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
        sessions = try SessionTable(database)
        idempotency = try IdempotencyTable(database)
        if let stored = try meta.integer(.instance) {
            instance = UInt64(bitPattern: stored)
        } else {
            instance = fresh
            try meta.set(.instance, Int64(bitPattern: fresh))
        }
        let ancestors = try database.prepare("SELECT instance, until FROM lineage")
        while try ancestors.step() { lineage[UInt64(bitPattern: ancestors.int64(0))] = ancestors.int64(1) }
    }

    /// Goes on as a history of its own: what was told up to now stays told, what comes next is nobody else's.
    func branch(_ fresh: UInt64) throws(SQLiteError) {
        try share(instance)
        try meta.set(.instance, Int64(bitPattern: fresh))
        instance = fresh
    }

    /// Goes on as a history that shares nothing with any before; returns those.
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

    /// Notes that another history has everything in common with this one up to now.
    func share(_ other: UInt64) throws(SQLiteError) {
        let until = try changes.newestPosition()
        let insert = try database.prepare("INSERT OR REPLACE INTO lineage (instance, until) VALUES (?, ?)")
        try insert.bind(Int64(bitPattern: other), at: 1)
        try insert.bind(until, at: 2)
        try insert.run()
        lineage[other] = until
    }

    /// Whether everything that a token of that history covers is part of this one.
    func shares(_ instance: UInt64, upTo position: Int64) -> Bool {
        instance == self.instance || position <= lineage[instance] ?? -1
    }

    /// Appends an entity as `viewer` sees it; false when it is not there (any more).
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
        }
    }

    /// Forgets tombstones older than `horizon`, and remembers in the same transaction up to where they were: a token from
    /// before that must never be answered as if nothing were missing.
    func forgetTombstones(before horizon: WallTime) throws {
        guard let newest = try changes.newestTombstone(before: horizon) else { return }
        try database.transaction {
            try meta.set(.tombstoneHorizon, max(newest, try meta.integer(.tombstoneHorizon) ?? 0))
            try changes.forgetTombstones(before: horizon)
        }
    }

    /// What a reader of the change feed may see.
    func scope(of viewer: Int64) throws(SQLiteError) -> ReaderScope {
        viewer == 0 ? .anonymous : ReaderScope(viewer: viewer, conversations: try conversations.of(viewer))
    }
}
