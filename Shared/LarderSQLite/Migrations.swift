/// One step of a schema's history.
package struct Migration {
    package let name: String
    let apply: (Database) throws(SQLiteError) -> Void

    package init(_ name: String, _ apply: @escaping (Database) throws(SQLiteError) -> Void) {
        self.name = name
        self.apply = apply
    }
}

/// Why a database could not be migrated.
package enum MigrationError: Error, CustomStringConvertible {
    /// The file was written by a newer program.
    case newerSchema(found: Int, known: Int)
    /// The file belongs to another application.
    case foreignFile(applicationID: Int32)
    /// A step failed; the database is unchanged since the previous step.
    case failed(name: String, cause: SQLiteError)

    package var description: String {
        switch self {
        case .newerSchema(let found, let known):
            "The database has schema version \(found); this program supports up to \(known). Use a newer program, or another file."
        case .foreignFile(let id):
            "The file is a SQLite database of another application (application_id \(id)). Name another file."
        case .failed(let name, let cause): "The migration '\(name)' failed and was rolled back: \(cause)"
        }
    }
}

/// The history of a schema. A file's `user_version` is the number of applied steps.
package struct Migrations {
    private let applicationID: Int32
    private let steps: [Migration]

    package init(applicationID: Int32, _ steps: [Migration]) {
        self.applicationID = applicationID
        self.steps = steps
    }

    /// Applies the missing steps, each in its own transaction.
    package func run(on database: Database) throws {
        let version = Int(try database.integer("PRAGMA user_version"))
        let owner = Int32(truncatingIfNeeded: try database.integer("PRAGMA application_id"))
        let tables = try database.integer("SELECT count(*) FROM sqlite_master")
        guard owner == applicationID || (owner == 0 && version == 0 && tables == 0) else {
            throw MigrationError.foreignFile(applicationID: owner)
        }
        guard version <= steps.count else { throw MigrationError.newerSchema(found: version, known: steps.count) }
        for (index, step) in steps.enumerated().dropFirst(version) {
            do {
                try database.transaction { () throws(SQLiteError) in
                    try step.apply(database)
                    try database.setUserVersion(Int32(index + 1))
                    try database.setApplicationID(applicationID)
                }
            } catch let error as SQLiteError {
                throw MigrationError.failed(name: step.name, cause: error)
            }
        }
    }
}
