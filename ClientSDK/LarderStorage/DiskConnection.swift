import LarderSQLite

/// A connection to the store's database with its prepared statements.
///
/// `@unchecked Sendable`: only its holder, from the pool of readers or under the writer's mutex, uses it
/// until it is given back, and both ways are ordered by a mutex.
package final class DiskConnection: @unchecked Sendable {
    let database: Database
    let context: DiskContext
    /// Counts the files that have had the store's name: this connection has opened that one.
    let generation: Int
    private var statements = [Statement?](repeating: nil, count: DiskStatement.allCases.count)
    /// The first error that reports damage, even if the caller has caught it.
    var damage: SQLiteError?
    /// The first failure of the current write transaction, which is then not committed, even if the caller has caught it.
    var failure: SQLiteError?
    /// Whether a payload file was missing. It may have been removed while its row was read.
    var hasMissedFile = false
    /// The files that the current transaction has created.
    var createdBlobs: [String] = []
    /// The changes of the current transaction to the outbox.
    var outboxChanges: [DiskOutboxCopy.Change] = []
    /// The identity of the log when this connection was opened.
    private var log: DiskFiles.Identity?
    /// Whether this connection has begun a write transaction and not ended it.
    var isWriting = false
    /// The current durability of commits.
    var durability: DiskStore.Durability = .processDeath
    /// SQLite's `data_version` at the last check: it changes with commits of other connections.
    private var dataVersion: Int64?

    init(_ database: Database, _ context: DiskContext, generation: Int) {
        self.database = database
        self.context = context
        self.generation = generation
    }

    /// Notes which file the log is, with the store's lock held.
    func noteLog() { log = context.files.identity(context.path + "-wal") }

    /// Whether the log that this connection writes was removed, so that others open another one. SQLite never removes it while this
    /// connection is open.
    var hasLostLog: Bool { log != nil && log != context.files.identity(context.path + "-wal") }

    /// The problem with the open files that SQLite itself would not notice; nil if there is none.
    var problem: SQLiteError? {
        guard !context.configuration.isInMemory else { return nil }
        if hasLostLog {
            return SQLiteError(code: .corrupt, message: "the log \(context.path)-wal was removed while it was in use")
        }
        guard (context.files.size(context.path) ?? 0) <= 1 else { return nil }
        return SQLiteError(code: .corrupt, message: "the file \(context.path) was emptied while it was in use")
    }

    func prepared(_ statement: DiskStatement) throws(SQLiteError) -> Statement {
        if let known = statements[statement.rawValue] { return known }
        let new = try database.prepare(statement.sql)
        statements[statement.rawValue] = new
        return new
    }

    /// Runs `body`, remembers failures, and throws every one as a `DiskError`.
    func perform<Result>(_ body: () throws -> Result) throws(DiskError) -> Result {
        // SQLite may have rolled back: later statements would be committed one by one.
        if let failure { throw DiskError(failure) }
        do {
            return try body()
        } catch {
            if let error = error as? SQLiteError {
                if isWriting { failure = error }
                if error.isDamage, damage == nil { damage = error }
            }
            throw DiskError(error)
        }
    }

    /// Notes whether another writing connection has committed since the last check. Cost: negligible within a transaction, a few
    /// microseconds outside.
    func checkForeignCommits() throws(SQLiteError) {
        let statement = try prepared(.dataVersion)
        defer { statement.reset() }
        guard try statement.step(isStep: false) else { return }
        let version = statement.int64(0)
        if let dataVersion, dataVersion != version { context.others.note() }
        dataVersion = version
    }

    /// Runs a statement whose values are bound already.
    func run(_ statement: DiskStatement) throws(SQLiteError) { try prepared(statement).run() }

    /// Binds texts and numbers in order, and runs the statement.
    func run(_ statement: DiskStatement, _ texts: [String], numbers: [Int64] = []) throws(SQLiteError) {
        let prepared = try prepared(statement)
        var index: Int32 = 1
        for text in texts {
            try prepared.bind(text, at: index)
            index += 1
        }
        for number in numbers {
            try prepared.bind(number, at: index)
            index += 1
        }
        try prepared.run()
    }

    /// Binds a kind and a space, and runs the statement.
    func run(_ statement: DiskStatement, kind: DiskKind, space: String) throws(SQLiteError) {
        let prepared = try prepared(statement)
        try prepared.bind(kind.rawValue, at: 1)
        try prepared.bind(space, at: 2)
        try prepared.run()
    }

    /// Binds the key of an item, and runs the statement.
    func run(_ statement: DiskStatement, _ kind: DiskKind, _ space: String, _ key: String) throws(SQLiteError) {
        let prepared = try prepared(statement)
        try prepared.bind(kind.rawValue, at: 1)
        try prepared.bind(space, at: 2)
        try prepared.bind(key, at: 3)
        try prepared.run()
    }
}
