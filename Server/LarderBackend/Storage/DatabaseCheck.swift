import LarderSQLite

/// The result of a database check.
package struct DatabaseReport: Sendable {
    package let lines: [String]
    package let isSound: Bool
}

/// Checks a database file without serving it: structure, schema and ledger.
package enum DatabaseCheck {
    /// - Throws: if the file cannot be opened, belongs to another program, or has a newer schema.
    package static func run(_ path: String) throws -> DatabaseReport {
        guard Database.fileExists(path) else {
            throw SQLiteError(code: .cannotOpen, message: "\(path): the file does not exist")
        }
        let database = try Database(.file(path))
        // A check must not create the schema in an empty file.
        guard try database.integer("SELECT count(*) FROM sqlite_master") > 0 else {
            return DatabaseReport(lines: ["\(path): empty; it contains no world"], isSound: false)
        }
        try WorldSchema.migrations.run(on: database)
        let problems = try database.integrityProblems()
        let faults = try LedgerCheck.run(database)
        let version = try database.integer("PRAGMA user_version")
        let counts = try [
            ("posts", database.integer("SELECT count(*) FROM entities WHERE kind = 2 AND deleted = 0")),
            ("transfers", database.integer("SELECT count(*) FROM transfers")),
            ("messages", database.integer("SELECT count(*) FROM entities WHERE kind = 6 AND deleted = 0")),
            ("tasks", database.integer("SELECT count(*) FROM entities WHERE kind = 8 AND deleted = 0")),
        ]
        var lines = ["\(path): schema \(version)"]
        lines.append(counts.map { "\($0.1) \($0.0)" }.joined(separator: ", "))
        lines.append(contentsOf: problems.map { "structure: \($0)" })
        lines.append(contentsOf: faults.map { "ledger: \($0)" })
        let count = problems.count + faults.count
        let isSound = count == 0
        lines.append(isSound ? "structure and ledger are sound" : "\(count) faults")
        return DatabaseReport(lines: lines, isSound: isSound)
    }
}
