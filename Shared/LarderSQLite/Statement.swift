import CSQLite

/// A prepared statement with its bound values and, while it is being stepped, its current row.
///
/// Confined like its database, which it keeps open. Parameters are numbered from 1, columns from 0. Columns may only be read
/// after `step()` returned true. `@safe`: the handle is valid from `init` to `deinit` and never leaves this file.
@safe package final class Statement {
    /// Nil until the first use: SQLite's functions treat nil as a statement without a row.
    private var handle: OpaquePointer?
    private let database: Database
    package let sql: SQLText

    init(_ sql: SQLText, of database: Database) {
        self.database = database
        self.sql = sql
    }

    /// The compiled statement. Compiled on first use, because most databases need only some of their statements.
    @inline(__always) private func compiled() throws(SQLiteError) -> OpaquePointer {
        if let handle = unsafe handle { return unsafe handle }
        let compiled = try unsafe database.compile(sql)
        unsafe handle = compiled
        return unsafe compiled
    }

    deinit { unsafe sqlite3_finalize(handle) }

    // MARK: Binding

    package func bind(_ value: Int64, at index: Int32) throws(SQLiteError) {
        try check(unsafe sqlite3_bind_int64(compiled(), index, value))
    }

    package func bind(_ value: Double, at index: Int32) throws(SQLiteError) {
        try check(unsafe sqlite3_bind_double(compiled(), index, value))
    }

    package func bind(_ value: String, at index: Int32) throws(SQLiteError) {
        // An empty string may have no address, and SQLite would bind NULL without one.
        guard !value.isEmpty else {
            return try check(unsafe sqlite3_bind_text64(compiled(), index, "", 0, Self.transient, UInt8(SQLITE_UTF8)))
        }
        var value = value
        let handle = try unsafe compiled()
        let result = value.withUTF8 { utf8 in
            unsafe utf8.withMemoryRebound(to: CChar.self) { text in
                unsafe sqlite3_bind_text64(
                    handle,
                    index,
                    text.baseAddress,
                    UInt64(text.count),
                    Self.transient,
                    UInt8(SQLITE_UTF8)
                )
            }
        }
        try check(result)
    }

    package func bind(_ value: [UInt8], at index: Int32) throws(SQLiteError) {
        guard !value.isEmpty else { return try check(unsafe sqlite3_bind_zeroblob(compiled(), index, 0)) }
        let handle = try unsafe compiled()
        let result = unsafe value.withUnsafeBytes { bytes in
            unsafe sqlite3_bind_blob64(handle, index, bytes.baseAddress, UInt64(bytes.count), Self.transient)
        }
        try check(result)
    }

    package func bindNull(at index: Int32) throws(SQLiteError) {
        try check(unsafe sqlite3_bind_null(compiled(), index))
    }

    /// SQLite copies the value before it returns, so the bytes need not outlive the call.
    private static var transient: sqlite3_destructor_type { unsafe unsafeBitCast(-1, to: sqlite3_destructor_type.self) }

    // MARK: Stepping

    /// Moves to the next row; false at the end.
    ///
    /// - Parameter isStep: whether the fault plan counts it; false for reads beside the statement's purpose.
    package func step(isStep: Bool = true) throws(SQLiteError) -> Bool {
        let handle = try unsafe compiled()
        if isStep, let faults = database.faults, unsafe sqlite3_stmt_busy(handle) == 0 {
            try faults.begins(readsOnly: unsafe sqlite3_stmt_readonly(handle) != 0)
        }
        switch unsafe sqlite3_step(handle) {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        default:
            let error = database.error(sql)
            unsafe sqlite3_reset(handle)
            throw error
        }
    }

    /// Ends the use of the statement, so that it holds no lock, and releases its bound values, which may be large.
    package func reset() {
        unsafe sqlite3_reset(handle)
        unsafe sqlite3_clear_bindings(handle)
    }

    /// Runs the statement to its end and resets it.
    package func run() throws(SQLiteError) {
        while try step() {}
        reset()
    }

    // MARK: Columns

    package func isNull(_ column: Int32) -> Bool { unsafe sqlite3_column_type(handle, column) == SQLITE_NULL }

    package func int64(_ column: Int32) -> Int64 { unsafe sqlite3_column_int64(handle, column) }

    /// The integer of a column; nil for NULL.
    package func optional(_ column: Int32) -> Int64? { isNull(column) ? nil : int64(column) }

    /// The text of a column; nil for NULL.
    package func optionalText(_ column: Int32) -> String? { isNull(column) ? nil : text(column) }

    package func double(_ column: Int32) -> Double { unsafe sqlite3_column_double(handle, column) }

    /// The text of a column; empty for NULL.
    package func text(_ column: Int32) -> String {
        guard let start = unsafe sqlite3_column_text(handle, column) else { return "" }
        let count = Int(unsafe sqlite3_column_bytes(handle, column))
        return unsafe String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
    }

    /// The bytes of a column; empty for NULL.
    package func bytes(_ column: Int32) -> [UInt8] {
        var bytes: [UInt8] = []
        append(column, to: &bytes)
        return bytes
    }

    /// Appends the bytes of a column to a buffer: one copy, no allocation if the buffer has room.
    package func append(_ column: Int32, to buffer: inout [UInt8]) {
        guard let start = unsafe sqlite3_column_blob(handle, column) else { return }
        let count = Int(unsafe sqlite3_column_bytes(handle, column))
        unsafe buffer.append(contentsOf: UnsafeRawBufferPointer(start: start, count: count))
    }

    private func check(_ result: Int32) throws(SQLiteError) {
        guard result == SQLITE_OK else { throw database.error(sql) }
    }
}
