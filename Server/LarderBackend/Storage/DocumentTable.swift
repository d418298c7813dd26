import LarderCoding
import LarderSQLite
import LarderTime

/// The identifier of a document: a number or a text in JSON. Its text is unique in its collection.
struct DocumentID: Sendable, Hashable {
    static let lengthMaximum = 200

    let text: String
    let isNumber: Bool

    init(_ text: String) { (self.text, isNumber) = (text, false) }
    init(_ number: Int64) { (text, isNumber) = (String(number), true) }

    /// Nil if the value is neither an integer nor a text of 1 to `lengthMaximum` bytes.
    init?(_ value: JSONValue) {
        switch value {
        case .integer(let number): self.init(number)
        case .string(let text) where !text.isEmpty && text.utf8.count <= Self.lengthMaximum: self.init(text)
        default: return nil
        }
    }

    var json: JSONValue { isNumber ? Int64(text).map { .integer($0) } ?? .string(text) : .string(text) }
}

struct DocumentRow: Sendable {
    let number: Int64
    /// The position in the collection.
    let place: Int64
    var json: [UInt8]
    var version: Int64
    var updated: WallTime
}

/// The documents of the user's own collections. Confined like its database.
final class DocumentTable {
    private let database: Database
    private let hasTable: Statement
    private let names: Statement
    private let numbering: Statement
    private let insertCollection: Statement
    private let upsert: Statement
    private let takePlace: Statement
    private let lastPlace: Statement
    private let lastNumber: Statement
    private let select: Statement
    private let selectRow: Statement
    private let update: Statement
    private let remove: Statement
    private let prune: Statement
    private let scan: Statement

    init(_ database: Database) throws(SQLiteError) {
        self.database = database
        hasTable = try database.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'collections'")
        names = try database.prepare("SELECT name FROM collections ORDER BY name")
        numbering = try database.prepare("SELECT numbers FROM collections WHERE name = ?")
        insertCollection = try database.prepare("INSERT INTO collections (name, numbers) VALUES (?, ?)")
        // A document that takes the identifier of a deleted one continues its versions.
        upsert = try database.prepare(
            """
            INSERT INTO documents (collection, id, is_number, place, json, deleted, version, updated)
            VALUES (?, ?, ?, ?, ?, 0, 1, ?)
            ON CONFLICT (collection, id) DO UPDATE SET is_number = excluded.is_number, place = excluded.place,
            json = excluded.json, deleted = 0, version = version + 1, updated = excluded.updated
            """
        )
        takePlace = try database.prepare(
            """
            UPDATE collections SET last_place = last_place + 1, last_number = max(last_number, ?2) WHERE name = ?1
            """
        )
        lastPlace = try database.prepare("SELECT last_place FROM collections WHERE name = ?")
        lastNumber = try database.prepare("SELECT last_number FROM collections WHERE name = ?")
        select = try database.prepare(
            """
            SELECT number, place, json, version, updated FROM documents
            WHERE collection = ? AND id = ? AND deleted = 0
            """
        )
        selectRow = try database.prepare(
            "SELECT collection, id, is_number, json, deleted FROM documents WHERE number = ?"
        )
        update = try database.prepare("UPDATE documents SET json = ?, version = ?, updated = ? WHERE number = ?")
        remove = try database.prepare(
            "UPDATE documents SET json = x'', deleted = 1, version = ?, updated = ? WHERE number = ?"
        )
        prune = try database.prepare(
            """
            DELETE FROM documents
            WHERE deleted = 1 AND number NOT IN (SELECT entity FROM changes WHERE kind = 9)
            """
        )
        scan = try database.prepare(
            """
            SELECT number, place, json, version, updated FROM documents
            WHERE collection = ? AND deleted = 0 ORDER BY place LIMIT ?
            """
        )
    }

    // MARK: Collections

    /// The names of all collections. A database from before there were collections has none.
    func collections() throws(SQLiteError) -> [String] {
        defer { hasTable.reset() }
        guard try hasTable.step() else { return [] }
        defer { names.reset() }
        var all: [String] = []
        while try names.step() { all.append(names.text(0)) }
        return all
    }

    /// Whether new documents get numbers as identifiers; nil if there is no such collection.
    func isNumbered(_ collection: String) throws(SQLiteError) -> Bool? {
        defer { numbering.reset() }
        try numbering.bind(collection, at: 1)
        return try numbering.step() ? numbering.int64(0) != 0 : nil
    }

    /// Whether the name is that of one document without an identifier.
    func isSingular(_ name: String) throws(SQLiteError) -> Bool {
        defer { numbering.reset() }
        try numbering.bind(name, at: 1)
        return try numbering.step() && numbering.int64(0) == Self.singular
    }

    private static let singular: Int64 = -1

    func addCollection(_ name: String, isNumbered: Bool, isSingular: Bool = false) throws(SQLiteError) {
        try insertCollection.bind(name, at: 1)
        try insertCollection.bind(isSingular ? Self.singular : isNumbered ? 1 : 0, at: 2)
        try insertCollection.run()
    }

    // MARK: Documents

    /// Appends a document to its collection. There must be none with its identifier.
    func add(_ id: DocumentID, _ json: [UInt8], to collection: String, at: WallTime) throws(SQLiteError) -> DocumentRow
    {
        let place = try nextPlace(collection)
        try takePlace.bind(collection, at: 1)
        try takePlace.bind(id.isNumber ? Int64(id.text) ?? 0 : 0, at: 2)
        try takePlace.run()
        try upsert.bind(collection, at: 1)
        try upsert.bind(id.text, at: 2)
        try upsert.bind(id.isNumber ? 1 : 0 as Int64, at: 3)
        try upsert.bind(place, at: 4)
        try upsert.bind(json, at: 5)
        try upsert.bind(at.milliseconds, at: 6)
        try upsert.run()
        guard let row = try find(collection, id.text) else {
            preconditionFailure("a row is found after it was written")
        }
        return row
    }

    /// The place after all that the collection's documents have or had: a cursor of a deleted document skips no new one.
    func nextPlace(_ collection: String) throws(SQLiteError) -> Int64 {
        defer { lastPlace.reset() }
        try lastPlace.bind(collection, at: 1)
        return try lastPlace.step() ? lastPlace.int64(0) + 1 : 1
    }

    /// The greatest number that a document has or had; 0 without any.
    func greatestNumber(_ collection: String) throws(SQLiteError) -> Int64 {
        defer { lastNumber.reset() }
        try lastNumber.bind(collection, at: 1)
        return try lastNumber.step() ? lastNumber.int64(0) : 0
    }

    func find(_ collection: String, _ id: String) throws(SQLiteError) -> DocumentRow? {
        defer { select.reset() }
        try select.bind(collection, at: 1)
        try select.bind(id, at: 2)
        return try select.step() ? Self.current(select) : nil
    }

    func replace(_ row: DocumentRow) throws(SQLiteError) {
        try update.bind(row.json, at: 1)
        try update.bind(row.version, at: 2)
        try update.bind(row.updated.milliseconds, at: 3)
        try update.bind(row.number, at: 4)
        try update.run()
    }

    func delete(_ row: DocumentRow) throws(SQLiteError) {
        try remove.bind(row.version, at: 1)
        try remove.bind(row.updated.milliseconds, at: 2)
        try remove.bind(row.number, at: 3)
        try remove.run()
    }

    /// Removes the identifiers of deleted documents that the change feed has forgotten.
    func forgetDeleted() throws(SQLiteError) {
        if try !collections().isEmpty { try prune.run() }
    }

    /// The first documents of a collection, in its order.
    func documents(_ collection: String, limit: Int = .max) throws(SQLiteError) -> [DocumentRow] {
        defer { scan.reset() }
        try scan.bind(collection, at: 1)
        try scan.bind(Int64(limit), at: 2)
        return try Self.all(scan)
    }

    private static func all(_ statement: Statement) throws(SQLiteError) -> [DocumentRow] {
        var rows: [DocumentRow] = []
        while try statement.step() { rows.append(current(statement)) }
        return rows
    }

    private static func current(_ statement: Statement) -> DocumentRow {
        DocumentRow(
            number: statement.int64(0),
            place: statement.int64(1),
            json: statement.bytes(2),
            version: statement.int64(3),
            updated: WallTime(milliseconds: statement.int64(4))
        )
    }

    // MARK: The change feed

    /// Appends a document; false if it does not exist.
    func append(_ number: Int64, to bytes: inout [UInt8]) throws(SQLiteError) -> Bool {
        defer { selectRow.reset() }
        try selectRow.bind(number, at: 1)
        guard try selectRow.step(), selectRow.int64(4) == 0 else { return false }
        selectRow.append(3, to: &bytes)
        return true
    }

    /// Appends the beginning of a change: `{"type":"todos","id":1`.
    func appendName(_ number: Int64, to bytes: inout [UInt8]) throws(SQLiteError) {
        defer { selectRow.reset() }
        try selectRow.bind(number, at: 1)
        guard try selectRow.step() else { return bytes.append("{\"type\":\"document\",\"id\":null") }
        var writer = JSONWriter(capacity: 64)
        writer.string(selectRow.text(0))
        bytes.append("{\"type\":")
        bytes.append(contentsOf: writer.bytes)
        bytes.append(",\"id\":")
        var id = JSONWriter(capacity: 64)
        if selectRow.int64(2) != 0 { id.integer(Int64(selectRow.text(1)) ?? 0) } else { id.string(selectRow.text(1)) }
        bytes.append(contentsOf: id.bytes)
    }
}
