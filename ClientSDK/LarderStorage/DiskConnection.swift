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

    /// The problem with the open file that SQLite itself would not notice; nil if there is none.
    var problem: SQLiteError? {
        guard !context.configuration.isInMemory, (context.files.size(context.path) ?? 0) <= 1 else { return nil }
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

    // MARK: Statements

    /// A statement with its values. The caller resets it.
    func bound(_ name: DiskStatement, _ values: [any SQLValue]) throws(SQLiteError) -> Statement {
        let statement = try prepared(name)
        for (index, value) in values.enumerated() { try value.bind(to: statement, at: Int32(index + 1)) }
        return statement
    }

    func run(_ name: DiskStatement, _ values: any SQLValue...) throws(SQLiteError) { try bound(name, values).run() }

    /// What `read` makes of the first row; nil without a row.
    func first<Value>(
        _ name: DiskStatement,
        _ values: any SQLValue...,
        read: (Statement) -> Value
    ) throws(SQLiteError) -> Value? {
        let statement = try bound(name, values)
        defer { statement.reset() }
        return try statement.step() ? read(statement) : nil
    }

    /// What `read` makes of all rows, without nil.
    func all<Value>(
        _ name: DiskStatement,
        _ values: any SQLValue...,
        read: (Statement) throws(SQLiteError) -> Value?
    ) throws(SQLiteError) -> [Value] {
        let statement = try bound(name, values)
        defer { statement.reset() }
        var all: [Value] = []
        while try statement.step() { if let value = try read(statement) { all.append(value) } }
        return all
    }
}

extension DiskKind: SQLValue {}

extension Stamp: SQLValue {}
