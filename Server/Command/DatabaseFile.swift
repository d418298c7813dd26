import LarderSQLite

/// The database file that the person at the command line names.
enum DatabaseFile {
    /// What is wrong with it, with its name in front.
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// Opens it, or says of whatever SQLite has to say which file is meant.
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
