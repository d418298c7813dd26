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

/// A collection, and what its next document gets.
struct CollectionRow: Sendable {
    /// Whether new documents get numbers as identifiers.
    let isNumbered: Bool
    /// Whether it is one document without an identifier.
    let isSingular: Bool
    /// The greatest place and number that a document has or had: neither is given again, so that a cursor of a deleted document skips no
    /// new one.
    let lastPlace: Int64
    let lastNumber: Int64
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
struct DocumentTable {
    let sql: SQL

    // MARK: Collections

    /// The names of all collections.
    func collections() throws(SQLiteError) -> [String] {
        try sql.all("SELECT name FROM collections ORDER BY name") { $0.text(0) }
    }

    /// Nil if there is no such collection.
    func collection(_ name: String) throws(SQLiteError) -> CollectionRow? {
        try sql.first("SELECT numbers, last_place, last_number FROM collections WHERE name = ?", [name]) { row in
            CollectionRow(
                isNumbered: row.bool(0),
                isSingular: row.int64(0) == Self.singular,
                lastPlace: row.int64(1),
                lastNumber: row.int64(2)
            )
        }
    }

    private static let singular: Int64 = -1

    func addCollection(_ name: String, isNumbered: Bool, isSingular: Bool) throws(SQLiteError) {
        try sql.run(
            "INSERT INTO collections (name, numbers) VALUES (?, ?)",
            [name, isSingular ? Self.singular : isNumbered ? 1 : 0]
        )
    }

    // MARK: Documents

    /// Appends a document to its collection. There must be none with its identifier.
    func add(_ id: DocumentID, _ json: [UInt8], to collection: String, at: WallTime) throws(SQLiteError) -> DocumentRow
    {
        let place = (try self.collection(collection)?.lastPlace ?? 0) + 1
        try sql.run(
            "UPDATE collections SET last_place = last_place + 1, last_number = max(last_number, ?2) WHERE name = ?1",
            [collection, id.isNumber ? Int64(id.text) ?? 0 : 0]
        )
        // A document that takes the identifier of a deleted one continues its versions.
        try sql.run(
            """
            INSERT INTO documents (collection, id, is_number, place, json, deleted, version, updated)
            VALUES (?, ?, ?, ?, ?, 0, 1, ?)
            ON CONFLICT (collection, id) DO UPDATE SET is_number = excluded.is_number, place = excluded.place,
            json = excluded.json, deleted = 0, version = version + 1, updated = excluded.updated
            """,
            [collection, id.text, id.isNumber, place, json, at]
        )
        guard let row = try find(collection, id.text) else {
            preconditionFailure("a row is found after it was written")
        }
        return row
    }

    func find(_ collection: String, _ id: String) throws(SQLiteError) -> DocumentRow? {
        try sql.first(
            """
            SELECT number, place, json, version, updated FROM documents
            WHERE collection = ? AND id = ? AND deleted = 0
            """,
            [collection, id],
            Self.read
        )
    }

    /// Writes what has changed of a document.
    ///
    /// - Parameter isDeleted: whether only its identifier is kept, for the change feed.
    func update(_ row: DocumentRow, isDeleted: Bool = false) throws(SQLiteError) {
        try sql.run(
            "UPDATE documents SET json = ?, deleted = ?, version = ?, updated = ? WHERE number = ?",
            [isDeleted ? [] : row.json, isDeleted, row.version, row.updated, row.number]
        )
    }

    /// Removes the identifiers of deleted documents that the change feed has forgotten.
    func forgetDeleted() throws(SQLiteError) {
        try sql.run(
            "DELETE FROM documents WHERE deleted = 1 AND number NOT IN (SELECT entity FROM changes WHERE kind = 9)"
        )
    }

    /// The documents of a collection, in its order.
    func documents(_ collection: String) throws(SQLiteError) -> [DocumentRow] {
        try sql.all(
            """
            SELECT number, place, json, version, updated FROM documents
            WHERE collection = ? AND deleted = 0 ORDER BY place
            """,
            [collection],
            Self.read
        )
    }

    private static func read(_ row: Statement) -> DocumentRow {
        DocumentRow(
            number: row.int64(0),
            place: row.int64(1),
            json: row.bytes(2),
            version: row.int64(3),
            updated: row.time(4)
        )
    }

    // MARK: The change feed

    /// Appends a document; nil if it does not exist.
    func append(_ number: Int64, to bytes: inout [UInt8]) throws(SQLiteError) -> EntityVersion? {
        try sql.first("SELECT json, version, updated FROM documents WHERE number = ? AND deleted = 0", [number]) {
            $0.append(0, to: &bytes)
            return $0.version(1)
        }
    }

    /// The type and the identifier of a document in the change feed.
    func name(_ number: Int64) throws(SQLiteError) -> (type: String, id: JSONValue) {
        try sql.first("SELECT collection, id, is_number FROM documents WHERE number = ?", [number]) { row in
            (row.text(0), row.bool(2) ? .integer(Int64(row.text(1)) ?? 0) : .string(row.text(1)))
        } ?? ("document", .null)
    }
}
