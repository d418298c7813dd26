import LarderSQLite
import LarderTime

/// The statements of a database, compiled once each. Confined like its database.
final class SQL {
    let database: Database
    private var statements: [SQLText: Statement] = [:]

    init(_ database: Database) { self.database = database }

    /// The statement with this text.
    func statement(_ sql: SQLText) throws(SQLiteError) -> Statement {
        if let known = statements[sql] { return known }
        let made = try database.prepare(sql)
        statements[sql] = made
        return made
    }

    /// Runs a statement to its end.
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
        _ read: (Statement) -> Value
    ) throws(SQLiteError) -> Value? {
        let statement = try bound(sql, values)
        defer { statement.reset() }
        return try statement.step() ? read(statement) : nil
    }

    func first<Value>(
        _ sql: SQLText,
        _ values: [any SQLValue] = [],
        _ read: (Statement) throws -> Value
    ) throws -> Value? {
        let statement = try bound(sql, values)
        defer { statement.reset() }
        return try statement.step() ? read(statement) : nil
    }

    /// What `read` makes of each row.
    func all<Value>(
        _ sql: SQLText,
        _ values: [any SQLValue] = [],
        _ read: (Statement) -> Value
    ) throws(SQLiteError) -> [Value] {
        let statement = try bound(sql, values)
        defer { statement.reset() }
        var all: [Value] = []
        while try statement.step() { all.append(read(statement)) }
        return all
    }

    /// What `read` makes of the rows next to the start of a page, newest first.
    ///
    /// - Parameters:
    ///   - id: the column of the rows.
    ///   - select: a statement that ends with `WHERE` or `AND`.
    ///   - values: the values of its parameters from ?3.
    func page<Value>(
        _ start: PageStart,
        of id: SQLText,
        limit: Int,
        _ select: SQLText,
        _ values: [any SQLValue],
        _ read: (Statement) -> Value
    ) throws(SQLiteError) -> [Value] {
        guard case .before(let row) = start else {
            return try all(
                "\(select) \(id) < ?1 ORDER BY \(id) DESC LIMIT ?2",
                [start.older, limit] + values,
                read
            )
        }
        return try all("\(select) \(id) > ?1 ORDER BY \(id) LIMIT ?2", [row, limit] + values, read).reversed()
    }

    /// The integer in the first row; nil without a row or for NULL.
    func integer(_ sql: SQLText, _ values: [any SQLValue] = []) throws(SQLiteError) -> Int64? {
        try first(sql, values) { $0.optional(0) } ?? nil
    }

    /// The least and the greatest integer in the first row; nil for NULL.
    func range(_ sql: SQLText, _ values: [any SQLValue] = []) throws(SQLiteError) -> ClosedRange<Int64>? {
        try first(sql, values) { row in row.optional(0).map { $0...row.int64(1) } } ?? nil
    }

    /// A statement with its values. The caller resets it.
    func bound(_ sql: SQLText, _ values: [any SQLValue]) throws(SQLiteError) -> Statement {
        let statement = try statement(sql)
        for (index, value) in values.enumerated() { try value.bind(to: statement, at: Int32(index + 1)) }
        return statement
    }
}

/// A value for a parameter of a statement.
protocol SQLValue {
    func bind(to statement: Statement, at index: Int32) throws(SQLiteError)
}

extension Int64: SQLValue {
    func bind(to statement: Statement, at index: Int32) throws(SQLiteError) { try statement.bind(self, at: index) }
}

extension Int: SQLValue {
    func bind(to statement: Statement, at index: Int32) throws(SQLiteError) {
        try statement.bind(Int64(self), at: index)
    }
}

extension Bool: SQLValue {
    func bind(to statement: Statement, at index: Int32) throws(SQLiteError) {
        try statement.bind(self ? 1 : 0 as Int64, at: index)
    }
}

extension String: SQLValue {
    func bind(to statement: Statement, at index: Int32) throws(SQLiteError) { try statement.bind(self, at: index) }
}

extension [UInt8]: SQLValue {
    func bind(to statement: Statement, at index: Int32) throws(SQLiteError) { try statement.bind(self, at: index) }
}

extension WallTime: SQLValue {
    func bind(to statement: Statement, at index: Int32) throws(SQLiteError) {
        try statement.bind(milliseconds, at: index)
    }
}

extension Optional: SQLValue where Wrapped: SQLValue {
    func bind(to statement: Statement, at index: Int32) throws(SQLiteError) {
        if let self { try self.bind(to: statement, at: index) } else { try statement.bindNull(at: index) }
    }
}

extension Statement {
    func optional(_ column: Int32) -> Int64? { isNull(column) ? nil : int64(column) }

    func bool(_ column: Int32) -> Bool { int64(column) != 0 }

    func time(_ column: Int32) -> WallTime { WallTime(milliseconds: int64(column)) }

    func version(_ column: Int32) -> EntityVersion { EntityVersion(int64(column), time(column + 1)) }
}
