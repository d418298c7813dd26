import LarderSQLite

/// Single values about the database.
struct MetaTable {
    /// A key. It is part of the file format.
    struct Name {
        let text: String

        /// The identity of this history: change tokens of another history are rejected.
        static let instance = Name(text: "instance")
        /// The newest position whose tombstone was removed.
        static let tombstoneHorizon = Name(text: "tombstoneHorizon")
        /// The source of the world, for people who open the file.
        static let origin = Name(text: "origin")

        /// A value that custom routes keep.
        static func route(_ name: String) -> Name { Name(text: "route " + name) }
    }

    let sql: SQL

    func integer(_ name: Name) throws(SQLiteError) -> Int64? {
        try sql.integer("SELECT value FROM meta WHERE name = ?", [name.text])
    }

    func text(_ name: Name) throws(SQLiteError) -> String? {
        try sql.first("SELECT value FROM meta WHERE name = ?", [name.text]) { $0.text(0) }
    }

    func set(_ name: Name, _ value: some SQLValue) throws(SQLiteError) {
        try sql.run("INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)", [name.text, value])
    }

    func remove(_ name: Name) throws(SQLiteError) { try sql.run("DELETE FROM meta WHERE name = ?", [name.text]) }
}
