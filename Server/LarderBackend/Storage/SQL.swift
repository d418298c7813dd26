package import LarderSQLite
import LarderTime

/// The statements of a database, compiled once each. Confined like its database.
final class SQL {
    let database: Database
    private var statements: [SQLText: Statement] = [:]

    init(_ database: Database) { self.database = database }

    func run(_ sql: SQLText, _ values: [any SQLValue] = []) throws(SQLiteError) {
        try bound(sql, values).run()
    }

    /// Runs an insertion; returns its row.
    func insert(_ sql: SQLText, _ values: [any SQLValue]) throws(SQLiteError) -> Int64 {
        try run(sql, values)
        return database.lastInsertRowID
    }

    /// What `read` makes of the first row; nil without one.
    func first<Value>(
        _ sql: SQLText,
        _ values: [any SQLValue] = [],
        _ read: (Statement) throws(SQLiteError) -> Value
    ) throws(SQLiteError) -> Value? {
        let statement = try bound(sql, values)
        defer { statement.reset() }
        return try statement.step() ? read(statement) : nil
    }

    /// What `read` makes of each row.
    func all<Value>(
        _ sql: SQLText,
        _ values: [any SQLValue] = [],
        _ read: (Statement) throws(SQLiteError) -> Value
    ) throws(SQLiteError) -> [Value] {
        let statement = try bound(sql, values)
        defer { statement.reset() }
        var all: [Value] = []
        while try statement.step() { all.append(try read(statement)) }
        return all
    }

    /// The integer in the first row; nil without a row or for NULL.
    func integer(_ sql: SQLText, _ values: [any SQLValue] = []) throws(SQLiteError) -> Int64? {
        try first(sql, values) { $0.optional(0) } ?? nil
    }

    /// A statement with its values. The caller resets it.
    func bound(_ sql: SQLText, _ values: [any SQLValue]) throws(SQLiteError) -> Statement {
        let known = statements[sql]
        let statement = if let known { known } else { try database.prepare(sql) }
        statements[sql] = statement
        for (index, value) in values.enumerated() { try value.bind(to: statement, at: Int32(index + 1)) }
        return statement
    }
}

extension Int: SQLValue {
    package func bind(to statement: Statement, at index: Int32) throws(SQLiteError) {
        try statement.bind(Int64(self), at: index)
    }
}

extension Bool: SQLValue {
    package func bind(to statement: Statement, at index: Int32) throws(SQLiteError) {
        try statement.bind(self ? 1 : 0 as Int64, at: index)
    }
}

extension WallTime: SQLValue {
    package func bind(to statement: Statement, at index: Int32) throws(SQLiteError) {
        try statement.bind(milliseconds, at: index)
    }
}

extension Statement {
    func bool(_ column: Int32) -> Bool { int64(column) != 0 }

    func time(_ column: Int32) -> WallTime { WallTime(milliseconds: int64(column)) }

    func version(_ column: Int32) -> EntityVersion {
        EntityVersion(number: int64(column), updated: time(column + 1))
    }
}
