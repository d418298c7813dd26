import CSQLite

extension Database {
    /// A table with its columns and its key columns.
    package struct TableShape: Sendable, Hashable {
        package let name: String
        package let columns: [String]
        /// The primary key; the row's number for a table that has none.
        package let key: [String]
    }

    /// The ordinary tables of the main database.
    package func tables() throws(SQLiteError) -> [TableShape] {
        let names = try prepare(
            "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"
        )
        let columns = try prepare("SELECT name, pk FROM pragma_table_info(?, 'main') ORDER BY cid")
        var shapes: [TableShape] = []
        while try names.step() {
            let name = names.text(0)
            var all: [String] = []
            var key: [(Int64, String)] = []
            try columns.bind(name, at: 1)
            while try columns.step() {
                all.append(columns.text(0))
                if columns.int64(1) > 0 { key.append((columns.int64(1), columns.text(0))) }
            }
            columns.reset()
            let keys = key.sorted { $0.0 < $1.0 }.map(\.1)
            shapes.append(TableShape(name: name, columns: all, key: keys.isEmpty ? ["rowid"] : keys))
        }
        names.reset()
        return shapes
    }

    /// Executes statements whose text was generated from the schema, because SQLite does not bind names. Never use it with
    /// external text, unless SQLite quoted it.
    package func executeGenerated(_ sql: String) throws(SQLiteError) {
        let result = unsafe sqlite3_exec(connection, sql, nil, nil, nil)
        guard result == SQLITE_OK else { throw unsafe SQLiteError(connection, sql: sql) }
    }
}
