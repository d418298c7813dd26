import LarderCoding
import LarderSQLite
import LarderTime

/// The identifier of a document: a number or a text in JSON. Its text is unique in its collection.
struct DocumentID: Sendable, Hashable {
    static let lengthMaximum = 200

    let text: String
    let json: JSONValue

    init(_ text: String) { (self.text, json) = (text, .string(text)) }
    init(_ number: Int64) { (text, json) = (String(number), .integer(number)) }

    /// Nil if the value is neither an integer nor a text of 1 to `lengthMaximum` bytes.
    init?(_ value: JSONValue) {
        switch value {
        case .integer(let number): self.init(number)
        case .string(let text) where !text.isEmpty && text.utf8.count <= Self.lengthMaximum: self.init(text)
        default: return nil
        }
    }
}

/// A collection, and what its next document gets.
struct CollectionRow: Sendable {
    let row: Int64
    let name: String
    /// Whether new documents get numbers as identifiers.
    let isNumbered: Bool
    /// Whether it is one document without an identifier.
    let isSingular: Bool
    /// The greatest number that is or was an identifier.
    let lastNumber: Int64
}

/// The user's own collections. Their documents are entities. Confined like its database.
struct CollectionTable {
    let sql: SQL
    private var entities: EntityTable { EntityTable(sql: sql) }

    init(sql: SQL) { self.sql = sql }

    func names() throws(SQLiteError) -> [String] {
        try sql.all("SELECT name FROM collections ORDER BY name") { $0.text(0) }
    }

    /// The name of the collection with that number.
    func name(_ row: Int64) throws(SQLiteError) -> String {
        try sql.first("SELECT name FROM collections WHERE id = ?", [row]) { $0.text(0) } ?? "document"
    }

    func add(_ name: String, isNumbered: Bool, isSingular: Bool) throws(SQLiteError) {
        try sql.run(
            "INSERT INTO collections (name, numbered, singular, last_number) VALUES (?, ?, ?, 0)",
            [name, isNumbered, isSingular]
        )
    }

    /// Nil if there is no such collection.
    func find(_ name: String) throws(SQLiteError) -> CollectionRow? {
        try sql.first("SELECT id, numbered, singular, last_number FROM collections WHERE name = ?", [name]) { row in
            CollectionRow(
                row: row.int64(0),
                name: name,
                isNumbered: row.bool(1),
                isSingular: row.bool(2),
                lastNumber: row.int64(3)
            )
        }
    }

    /// The documents of a collection, in its order.
    func documents(_ name: String) throws(SQLiteError) -> [EntityRow] {
        try find(name).map { collection throws(SQLiteError) in try entities.all(.of(.document, collection.row)) } ?? []
    }

    func document(_ id: String, in collection: CollectionRow) throws(SQLiteError) -> EntityRow? {
        let found = try entities.find(.document, named: id, in: collection.row)
        return found.flatMap { $0.isDeleted ? nil : $0 }
    }

    /// Makes a document, which is to be added at the end of its collection. If it has the identifier of a deleted one, it continues the
    /// versions of that one.
    func newDocument(
        _ id: DocumentID,
        _ members: JSONObject,
        in collection: CollectionRow,
        at: WallTime
    ) throws(SQLiteError) -> EntityRow {
        if let number = id.json.integer {
            try sql.run(
                "UPDATE collections SET last_number = max(last_number, ?) WHERE id = ?",
                [number, collection.row]
            )
        }
        let deleted = try entities.find(.document, named: id.text, in: collection.row)
        return EntityRow(
            id: try entities.next(.document),
            list: collection.row,
            name: id.text,
            members: members,
            version: (deleted?.version ?? 0) + 1,
            updated: at
        )
    }
}

extension EntityRow {
    var document: [UInt8] { JSONValue.object(members).encoded }
}
