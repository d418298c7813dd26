import LarderSQLite
import LarderTime

/// Undo information for the latest commits, so that a read can see the state of a lagging replica.
///
/// For every changed row, triggers record the statement that restores it (SQLite documents this technique for undo). A read of
/// the past executes these statements in a transaction that is then rolled back: the present state is not changed. Writes pay
/// for it only from the first lagging replica to the end of the state. Confined like its database.
package final class StateHistory {
    /// The requested past state.
    package enum Limit: Sendable, Hashable {
        /// The state that long ago.
        case age(Duration)
        /// The state that many commits ago.
        case commits(Int)
    }

    private struct Mark {
        let commit: Int64
        let at: WallTime
        /// The last log entry of this commit or an earlier one.
        let entry: Int64
        /// The newest position of the change feed at that time; triggers do not cover sequences.
        let position: Int64
    }

    private let sql: SQL
    private var marks: [Mark] = []

    /// The maximum number of commits in the history: a replica further behind shows the oldest one.
    package static let commitsMaximum = 10_000

    init(_ database: Database, from commit: Int64, at: WallTime) throws(SQLiteError) {
        sql = SQL(database)
        try database.execute("CREATE TEMP TABLE IF NOT EXISTS undo (id INTEGER PRIMARY KEY, statement TEXT NOT NULL)")
        // Otherwise the row that INSERT OR REPLACE removes would not be recorded.
        try database.execute("PRAGMA recursive_triggers = ON")
        for table in try database.tables() {
            for trigger in Self.triggers(table) { try database.executeGenerated(trigger) }
        }
        marks.append(Mark(commit: commit, at: at, entry: 0, position: try newestPosition()))
    }

    private func newestPosition() throws(SQLiteError) -> Int64 {
        try sql.integer("SELECT max(seq) FROM sqlite_sequence WHERE name = 'entities'") ?? 0
    }

    /// Records the position of a committed transaction.
    func committed(_ number: Int64, at: WallTime) {
        do {
            let entry = try sql.integer("SELECT ifnull(max(id), 0) FROM temp.undo") ?? 0
            marks.append(Mark(commit: number, at: at, entry: entry, position: try newestPosition()))
            guard marks.count > Self.commitsMaximum else { return }
            marks.removeFirst(marks.count / 2)
            if let first = marks.first { try sql.run("DELETE FROM temp.undo WHERE id <= ?", [first.entry]) }
        } catch {
            // A commit without a mark is undone together with the next one: the replica lags a little further. Entries that could not be
            // removed only take space until the next attempt.
        }
    }

    /// Runs `body` on an earlier state.
    func asItWas<Result>(_ limit: Limit, now: WallTime, newest: Int64, _ body: () throws -> Result) throws -> Result {
        let mark: Mark?
        switch limit {
        case .age(let age): mark = marks.last { $0.at <= now - age } ?? marks.first
        case .commits(let count): mark = marks.last { $0.commit <= newest - Int64(count) } ?? marks.first
        }
        guard let mark, mark.commit < newest else { return try body() }
        let database = sql.database
        let statements = try sql.all("SELECT statement FROM temp.undo WHERE id > ? ORDER BY id DESC", [mark.entry]) {
            $0.text(0)
        }
        try database.begin()
        defer { database.rollBack() }
        try database.execute("PRAGMA defer_foreign_keys = ON")
        for statement in statements { try database.executeGenerated(statement) }
        try sql.run("UPDATE sqlite_sequence SET seq = ? WHERE name = 'entities'", [mark.position])
        return try body()
    }

    /// Names come from the schema; SQLite quotes the values.
    private static func triggers(_ table: Database.TableShape) -> [String] {
        let name = "\"\(table.name)\""
        func key(_ row: String) -> String {
            table.key.map { "\"\($0)\" IS ' || quote(\(row).\"\($0)\") || '" }.joined(separator: " AND ")
        }
        let columns = table.columns.map { "\"\($0)\"" }.joined(separator: ", ")
        let values = table.columns.map { "' || quote(old.\"\($0)\") || '" }.joined(separator: ", ")
        let assignments = table.columns.map { "\"\($0)\" = ' || quote(old.\"\($0)\") || '" }.joined(separator: ", ")
        func trigger(_ kind: String, _ statement: String) -> String {
            """
            CREATE TEMP TRIGGER IF NOT EXISTS "undo_\(kind)_\(table.name)" AFTER \(kind) ON main.\(name) BEGIN
            INSERT INTO undo (statement) VALUES ('\(statement)'); END
            """
        }
        return [
            trigger("insert", "DELETE FROM main.\(name) WHERE \(key("new"))"),
            trigger("update", "UPDATE main.\(name) SET \(assignments) WHERE \(key("new"))"),
            trigger("delete", "INSERT INTO main.\(name) (\(columns)) VALUES (\(values))"),
        ]
    }
}
