import LarderSQLite
import LarderTime

/// How the last commits of a world can be undone, so that a read can see the state as a lagging replica would show it.
///
/// Triggers write down, for every row that changes, the statement that changes it back (SQLite's own documentation of undo
/// describes the technique). A read of the past applies them inside a transaction that is then rolled back: the present is
/// never touched. It costs writes something only while a lagging replica is configured. Confined like its database.
final class StateHistory {
    /// Which state is wanted.
    enum Limit: Sendable, Hashable {
        /// As it was that long ago.
        case age(Duration)
        /// As it was that many commits ago.
        case commits(Int)
    }

    private struct Mark {
        let commit: Int64
        let at: WallTime
        /// The last entry of the log that belongs to this commit or an earlier one.
        let entry: Int64
        /// The newest position of the change feed then; sequences are not the triggers' business.
        let position: Int64
    }

    private let database: Database
    private let newestEntry: Statement
    private let entries: Statement
    private let prune: Statement
    private let newestPosition: Statement
    private let setPosition: Statement
    private var marks: [Mark]

    /// No more commits than this are remembered: a replica that lags further behind shows the oldest that is.
    static let commitsMaximum = 10_000

    init(_ database: Database, from commit: Int64, at: WallTime) throws(SQLiteError) {
        self.database = database
        try database.execute("CREATE TEMP TABLE IF NOT EXISTS undo (id INTEGER PRIMARY KEY, statement TEXT NOT NULL)")
        // Without it the row that INSERT OR REPLACE removes would be gone without a trace.
        try database.execute("PRAGMA recursive_triggers = ON")
        // What is only said once more is not read while the past is shown.
        for table in try database.tables() where !WorldSchema.derivedTables.contains(table.name) {
            for trigger in Self.triggers(table) { try database.executeMadeUp(trigger) }
        }
        newestEntry = try database.prepare("SELECT ifnull(max(id), 0) FROM temp.undo")
        entries = try database.prepare("SELECT statement FROM temp.undo WHERE id > ? ORDER BY id DESC")
        prune = try database.prepare("DELETE FROM temp.undo WHERE id <= ?")
        newestPosition = try database.prepare("SELECT ifnull(max(seq), 0) FROM sqlite_sequence WHERE name = 'changes'")
        setPosition = try database.prepare("UPDATE sqlite_sequence SET seq = ? WHERE name = 'changes'")
        marks = []
        marks.append(Mark(commit: commit, at: at, entry: 0, position: try Self.integer(newestPosition)))
    }

    /// Notes that a transaction was committed.
    func committed(_ number: Int64, at: WallTime) {
        // Without its mark a commit is undone together with the one after it: the replica lags a little further.
        guard let entry = try? Self.integer(newestEntry), let position = try? Self.integer(newestPosition) else {
            return
        }
        marks.append(Mark(commit: number, at: at, entry: entry, position: position))
        guard marks.count > Self.commitsMaximum else { return }
        marks.removeFirst(marks.count / 2)
        guard let first = marks.first else { return }
        do {
            try prune.bind(first.entry, at: 1)
            try prune.run()
        } catch {
            // Entries that could not be removed only take space until the next time.
            prune.reset()
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
        var statements: [String] = []
        try entries.bind(mark.entry, at: 1)
        while try entries.step() { statements.append(entries.text(0)) }
        entries.reset()
        try database.begin()
        defer { database.rollBack() }
        try database.execute("PRAGMA defer_foreign_keys = ON")
        for statement in statements { try database.executeMadeUp(statement) }
        try setPosition.bind(mark.position, at: 1)
        try setPosition.run()
        return try body()
    }

    /// Stops remembering.
    func end() throws(SQLiteError) {
        for table in try database.tables() {
            for kind in ["insert", "update", "delete"] {
                try database.executeMadeUp("DROP TRIGGER IF EXISTS temp.\"undo_\(kind)_\(table.name)\"")
            }
        }
        try database.execute("DELETE FROM temp.undo")
        try database.execute("PRAGMA recursive_triggers = OFF")
    }

    private static func integer(_ statement: Statement) throws(SQLiteError) -> Int64 {
        defer { statement.reset() }
        return try statement.step() ? statement.int64(0) : 0
    }

    /// Names come from the schema, values are quoted by SQLite itself.
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
