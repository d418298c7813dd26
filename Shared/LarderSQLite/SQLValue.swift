/// A value for a parameter of a statement.
package protocol SQLValue {
    func bind(to statement: Statement, at index: Int32) throws(SQLiteError)
}

extension Int64: SQLValue {
    package func bind(to statement: Statement, at index: Int32) throws(SQLiteError) {
        try statement.bind(self, at: index)
    }
}

extension String: SQLValue {
    package func bind(to statement: Statement, at index: Int32) throws(SQLiteError) {
        try statement.bind(self, at: index)
    }
}

extension [UInt8]: SQLValue {
    package func bind(to statement: Statement, at index: Int32) throws(SQLiteError) {
        try statement.bind(self, at: index)
    }
}

extension Optional: SQLValue where Wrapped: SQLValue {
    package func bind(to statement: Statement, at index: Int32) throws(SQLiteError) {
        if let self { try self.bind(to: statement, at: index) } else { try statement.bindNull(at: index) }
    }
}

extension SQLValue where Self: RawRepresentable, RawValue: SQLValue {
    package func bind(to statement: Statement, at index: Int32) throws(SQLiteError) {
        try rawValue.bind(to: statement, at: index)
    }
}
