import LarderSQLite

/// What a look at a database file found.
package struct DatabaseReport: Sendable {
    package let lines: [String]
    package let isSound: Bool
}

/// Looks at a database without serving it: its structure, its schema, its ledger and its feed.
package enum DatabaseCheck {
    /// - Throws: when the file cannot be opened, belongs to another program, or has a newer schema.
    package static func run(_ path: String) throws -> DatabaseReport {
        guard Database.fileExists(path) else {
            throw SQLiteError(code: .cannotOpen, message: "\(path): there is no such file")
        }
        let database = try Database(.file(path))
        // A look must not make a world of what is none.
        guard try database.integer("SELECT count(*) FROM sqlite_master") > 0 else {
            return DatabaseReport(lines: ["\(path): empty; no world was ever kept in it"], isSound: false)
        }
        try WorldSchema.migrations.run(on: database)
        let problems = try database.integrityProblems()
        let faults = try LedgerCheck.run(database)
        let chunks = try FeedChunkTable.faults(in: database)
        let version = try database.integer("PRAGMA user_version")
        let counts = try [
            ("posts", database.integer("SELECT count(*) FROM posts")),
            ("transfers", database.integer("SELECT count(*) FROM transfers")),
            ("messages", database.integer("SELECT count(*) FROM messages")),
        ]
        var lines = ["\(path): schema \(version)"]
        lines.append(counts.map { "\($0.1) \($0.0)" }.joined(separator: ", "))
        lines.append(contentsOf: problems.map { "structure: \($0)" })
        lines.append(contentsOf: faults.map { "ledger: \($0)" })
        lines.append(contentsOf: chunks.map { "feed: it does not say what \(FeedChunkLayout.posts(of: $0)) are" })
        let count = problems.count + faults.count + chunks.count
        let isSound = count == 0
        lines.append(isSound ? "structure and ledger are sound" : "\(count) faults")
        return DatabaseReport(lines: lines, isSound: isSound)
    }
}
