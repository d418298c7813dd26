import LarderSQLite

/// The database file named on the command line.
enum DatabaseFile {
    /// The error with the file's name.
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// Opens the file; SQLite's errors get the file's name.
    static func naming<Result>(_ path: String?, _ open: () throws -> Result) throws -> Result {
        do {
            return try open()
        } catch {
            let text = "\(error)"
            guard let path, error is SQLiteError || error is MigrationError, !text.contains(path) else { throw error }
            throw Failure(description: "\(path): \(text)")
        }
    }
}
