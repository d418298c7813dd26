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

    func integer(_ name: Name) throws(SQLiteError) -> Int64? { try integer(named: name.rawValue) }

    func text(_ name: Name) throws(SQLiteError) -> String? { try text(named: name.rawValue) }

    func set(_ name: Name, _ value: Int64) throws(SQLiteError) { try set(name.rawValue, value) }

    func set(_ name: Name, _ value: String) throws(SQLiteError) { try set(name.rawValue, value) }

    // MARK: Values of custom routes

    func routeInteger(_ name: String) throws(SQLiteError) -> Int64? { try integer(named: "route " + name) }

    func routeText(_ name: String) throws(SQLiteError) -> String? { try text(named: "route " + name) }

    func setRoute(_ name: String, _ value: Int64) throws(SQLiteError) { try set("route " + name, value) }

    func setRoute(_ name: String, _ value: String) throws(SQLiteError) { try set("route " + name, value) }

    // MARK: Statements

    private func integer(named name: String) throws(SQLiteError) -> Int64? {
        defer { select.reset() }
        try select.bind(name, at: 1)
        return try select.step() ? select.int64(0) : nil
    }

    private func text(named name: String) throws(SQLiteError) -> String? {
        defer { select.reset() }
        try select.bind(name, at: 1)
        return try select.step() ? select.text(0) : nil
    }

    private func set(_ name: String, _ value: Int64) throws(SQLiteError) {
        try upsert.bind(name, at: 1)
        try upsert.bind(value, at: 2)
        try upsert.run()
    }

    private func set(_ name: String, _ value: String) throws(SQLiteError) {
        try upsert.bind(name, at: 1)
        try upsert.bind(value, at: 2)
        try upsert.run()
    }
}
