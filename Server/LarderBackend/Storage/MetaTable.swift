import LarderSQLite

/// Single values about the database.
final class MetaTable {
    /// The keys. They are part of the file format.
    enum Name: String {
        /// The identity of this history: change tokens of another history are rejected.
        case instance
        /// The newest position whose tombstone was removed.
        case tombstoneHorizon
        /// The source of the world, for people who open the file.
        case origin
    }

    private let select: Statement
    private let upsert: Statement

    init(_ database: Database) throws(SQLiteError) {
        select = try database.prepare("SELECT value FROM meta WHERE name = ?")
        upsert = try database.prepare("INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)")
    }

    func integer(_ name: Name) throws(SQLiteError) -> Int64? {
        defer { select.reset() }
        try select.bind(name.rawValue, at: 1)
        return try select.step() ? select.int64(0) : nil
    }

    func text(_ name: Name) throws(SQLiteError) -> String? {
        defer { select.reset() }
        try select.bind(name.rawValue, at: 1)
        return try select.step() ? select.text(0) : nil
    }

    func set(_ name: Name, _ value: Int64) throws(SQLiteError) {
        try upsert.bind(name.rawValue, at: 1)
        try upsert.bind(value, at: 2)
        try upsert.run()
    }

    func set(_ name: Name, _ value: String) throws(SQLiteError) {
        try upsert.bind(name.rawValue, at: 1)
        try upsert.bind(value, at: 2)
        try upsert.run()
    }
}
