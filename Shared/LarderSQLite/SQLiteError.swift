import CSQLite

/// An error of SQLite.
///
/// Contains the statement but never its bound values, which may be secrets.
package struct SQLiteError: Error, Sendable, Hashable, CustomStringConvertible {
    /// A primary result code of SQLite. A struct, because SQLite may return codes that are not listed here.
    package struct Code: RawRepresentable, Sendable, Hashable {
        package let rawValue: Int32

        package init(rawValue: Int32) { self.rawValue = rawValue }

        package static let error = Code(rawValue: SQLITE_ERROR)
        package static let busy = Code(rawValue: SQLITE_BUSY)
        package static let locked = Code(rawValue: SQLITE_LOCKED)
        package static let readOnly = Code(rawValue: SQLITE_READONLY)
        package static let interrupted = Code(rawValue: SQLITE_INTERRUPT)
        package static let inputOutput = Code(rawValue: SQLITE_IOERR)
        package static let corrupt = Code(rawValue: SQLITE_CORRUPT)
        package static let full = Code(rawValue: SQLITE_FULL)
        package static let cannotOpen = Code(rawValue: SQLITE_CANTOPEN)
        package static let constraint = Code(rawValue: SQLITE_CONSTRAINT)
        package static let tooBig = Code(rawValue: SQLITE_TOOBIG)
        package static let notADatabase = Code(rawValue: SQLITE_NOTADB)
        package static let mismatch = Code(rawValue: SQLITE_MISMATCH)
        package static let format = Code(rawValue: SQLITE_FORMAT)
    }

    /// The extended code of a read beyond the file's end: the file was truncated.
    package static let shortRead: Int32 = SQLITE_IOERR | (2 << 8)
    /// `SQLITE_IOERR_SHMSIZE`.
    private static let indexFull: Int32 = SQLITE_IOERR | (19 << 8)

    package let code: Code
    /// SQLite's extended code, which distinguishes variants of a primary code.
    package let extendedCode: Int32
    package let message: String
    package let sql: String?

    package init(code: Code, extendedCode: Int32? = nil, message: String, sql: String? = nil) {
        self.code = code
        self.extendedCode = extendedCode ?? code.rawValue
        self.message = message
        self.sql = sql
    }

    /// The last error of a connection.
    init(_ handle: OpaquePointer?, sql: String? = nil) {
        let extended = unsafe sqlite3_extended_errcode(handle)
        let message = unsafe String(cString: sqlite3_errmsg(handle))
        // The index of a log cannot grow: SQLite has no code for the reason, which is a full disk.
        let code = extended == Self.indexFull ? .full : Code(rawValue: extended & 0xFF)
        self.init(code: code, extendedCode: extended, message: message, sql: sql)
    }

    package var remedy: String {
        switch code {
        case .busy, .locked: "Another connection has locked the database: try again, or close the other program."
        case .full: "The disk is full: free space and try again; the transaction was rolled back."
        case .corrupt, .notADatabase:
            "The file is damaged or not a SQLite database: move it away and start with a new one."
        case .readOnly, .cannotOpen: "Check that the directory exists and that it and the file are writable."
        case .inputOutput: "The disk failed: check the system's log."
        default: "See the message."
        }
    }

    private var isExplained: Bool {
        switch code {
        case .busy, .locked, .full, .corrupt, .notADatabase, .readOnly, .cannotOpen, .inputOutput: true
        default: false
        }
    }

    /// The error without its statement and message, which name tables and columns.
    package var summary: String {
        guard sql != nil else { return description }
        let code = "SQLite error \(extendedCode)."
        return isExplained ? "\(code) \(remedy)" : code
    }

    /// The text of an error, possibly of SQLite, that may leave the process.
    package static func summary(of error: any Error) -> String {
        switch error {
        case let error as SQLiteError: error.summary
        case MigrationError.failed(_, let cause): "The schema could not be migrated: \(cause.summary)"
        default: "\(error)"
        }
    }

    package var description: String {
        let statement = sql.map { " in '\($0)'" } ?? ""
        return "SQLite error \(extendedCode): \(message)\(statement). \(remedy)"
    }
}
