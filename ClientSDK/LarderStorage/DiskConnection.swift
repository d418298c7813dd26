import LarderSQLite
import Synchronization

/// A connection to the store's database with its prepared statements. Within the closure of `DiskStore.read` or `write` it is the
/// transaction: all changes are stored, or none. Entities, lists, tokens and the changes that they cover belong in one transaction.
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
    /// The transaction of the store that changes with this one (`DiskStore.write`).
    package internal(set) var companion: DiskConnection?
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
        do { return try body() } catch { throw noted(error) }
    }

    private func noted(_ error: any Error) -> DiskError {
        if let error = error as? SQLiteError {
            if isWriting { failure = error }
            if error.isDamage, damage == nil { damage = error }
        }
        return DiskError(error)
    }

    /// The error of damage that SQLite does not find by itself.
    func damaged(_ text: String) -> DiskError { noted(SQLiteError(code: .corrupt, message: text)) }

    /// Notes whether another writing connection has committed since the last check. Cost: negligible within a transaction, a few
    /// microseconds outside.
    func checkForeignCommits() throws(DiskError) {
        try perform {
            let statement = try prepared(.dataVersion)
            defer { statement.reset() }
            guard try statement.step(isStep: false) else { return }
            let version = statement.int64(0)
            if let dataVersion, dataVersion != version { context.foreignCommits.wrappingAdd(1, ordering: .releasing) }
            dataVersion = version
        }
    }

    /// Reads in one snapshot; within a transaction, in that.
    func snapshot<Result>(_ body: () throws -> Result) throws -> Result {
        if isWriting { return try body() }
        try run(.begin)
        do {
            let result = try body()
            try run(.commit)
            return result
        } catch {
            database.rollBack()
            throw error
        }
    }

    // MARK: Statements

    /// Uses a statement with its values.
    func using<Result>(
        _ name: DiskStatement,
        _ values: [any SQLValue],
        _ body: (Statement) throws -> Result
    ) throws(DiskError) -> Result {
        try perform {
            let statement = try prepared(name)
            for (index, value) in values.enumerated() { try value.bind(to: statement, at: Int32(index + 1)) }
            defer { statement.reset() }
            return try body(statement)
        }
    }

    func run(_ name: DiskStatement, _ values: any SQLValue...) throws(DiskError) {
        try using(name, values) { try $0.run() }
    }

    /// What `read` makes of the first row; nil without a row.
    func first<Value>(
        _ name: DiskStatement,
        _ values: any SQLValue...,
        read: (Statement) -> Value
    ) throws(DiskError) -> Value? {
        try using(name, values) { try $0.step() ? read($0) : nil }
    }

    /// What `read` makes of all rows, without nil.
    func all<Value>(
        _ name: DiskStatement,
        _ values: any SQLValue...,
        read: (Statement) throws -> Value?
    ) throws(DiskError) -> [Value] {
        try using(name, values) { statement in
            var all: [Value] = []
            while try statement.step() { if let value = try read(statement) { all.append(value) } }
            return all
        }
    }
}

extension DiskKind: SQLValue {}

extension Stamp: SQLValue {}
