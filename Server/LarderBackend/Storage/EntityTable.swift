import LarderCoding
import LarderSQLite
import LarderTime

/// A list of entities of one kind, in the order of their rows.
struct EntityList: Sendable {
    let kind: EntityKind
    fileprivate let value: Int64
    /// With `value` as ?2.
    fileprivate let condition: SQLText

    static func all(_ kind: EntityKind) -> EntityList { EntityList(kind: kind, value: 0, condition: "?2 = 0") }

    /// The entities with that `EntityRow.list`.
    static func of(_ kind: EntityKind, _ list: Int64) -> EntityList {
        EntityList(kind: kind, value: list, condition: "list = ?2")
    }

    static func conversations(of user: Int64) -> EntityList {
        let condition: SQLText = "id IN (SELECT conversation FROM members WHERE user = ?2)"
        return EntityList(kind: .conversation, value: user, condition: condition)
    }
}

/// How the items of a list are written.
enum ItemForm: Sendable {
    case whole
    /// Identifiers and versions only: `{"id":"post_1","version":3}`.
    case index
}

/// The entities of all kinds, in the order of their last change: a row is also the entity's entry in the change feed.
///
/// A deleted entity leaves a tombstone. The table therefore has one row for each entity or tombstone, and a reader that starts at the
/// beginning reads the whole state (like CouchDB's `_changes`). Confined like its database.
struct EntityTable {
    let sql: SQL

    // MARK: Entities

    /// The identity of the next entity of a kind. That of a deleted one is not given again.
    func next(_ kind: EntityKind) throws(SQLiteError) -> EntityID {
        let last = try sql.integer("SELECT max(id) FROM entities WHERE kind = ?", [kind.rawValue])
        return EntityID(kind, (last ?? 0) + 1)
    }

    /// Writes an entity, as the newest change of the feed.
    @discardableResult func save(_ entity: EntityRow) throws(SQLiteError) -> ChangeRow {
        let position = try sql.insert(
            """
            INSERT OR REPLACE INTO entities (kind, id, list, name, head, deleted, version, updated)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?)
            """,
            [
                entity.id.kind.rawValue, entity.id.row, entity.list, entity.name,
                Array(JSONValue.object(entity.members).encoded.dropLast()), entity.isDeleted, entity.version,
                entity.updated,
            ]
        )
        return ChangeRow(
            position: position,
            entity: entity.id,
            list: entity.list,
            isDeleted: entity.isDeleted,
            at: entity.updated,
            version: entity.version
        )
    }

    private static let select: SQLText = """
        SELECT kind, id, list, name, head, deleted, version, updated FROM entities WHERE
        """

    /// Nil if there is none, or it was deleted.
    func find(_ id: EntityID) throws(SQLiteError) -> EntityRow? {
        try sql.first("\(Self.select) kind = ? AND id = ? AND deleted = 0", [id.kind.rawValue, id.row], Self.read)
    }

    /// The entity with a name; if it was deleted, the last one that had it.
    func find(_ kind: EntityKind, named name: String, in list: Int64 = 0) throws(SQLiteError) -> EntityRow? {
        try sql.first(
            "\(Self.select) kind = ? AND list = ? AND name = ? ORDER BY deleted, position DESC LIMIT 1",
            [kind.rawValue, list, name],
            Self.read
        )
    }

    /// The entity of a change, also of a deletion; nil if it has changed again.
    func find(at position: Int64) throws(SQLiteError) -> EntityRow? {
        try sql.first("\(Self.select) position = ?", [position], Self.read)
    }

    func all(_ list: EntityList) throws(SQLiteError) -> [EntityRow] {
        try sql.all(
            "\(Self.select) kind = ?1 AND \(list.condition) AND deleted = 0 ORDER BY id",
            [list.kind.rawValue, list.value],
            Self.read
        )
    }

    private static func read(_ row: Statement) throws(SQLiteError) -> EntityRow {
        EntityRow(
            id: EntityID(try kind(row.int64(0)), row.int64(1)),
            list: row.int64(2),
            name: row.isNull(3) ? nil : row.text(3),
            members: try members(row.bytes(4)),
            isDeleted: row.bool(5),
            version: row.int64(6),
            updated: row.time(7)
        )
    }

    private static func kind(_ stored: Int64) throws(SQLiteError) -> EntityKind {
        guard let kind = EntityKind(rawValue: stored) else {
            throw SQLiteError(code: .corrupt, message: "The database has an entity of the unknown kind \(stored).")
        }
        return kind
    }

    private static func members(_ head: [UInt8]) throws(SQLiteError) -> JSONObject {
        let value: JSONValue
        do { value = try JSONParser.parse(head + [UInt8(ascii: "}")]) } catch {
            throw SQLiteError(code: .corrupt, message: "The database has an entity that is no JSON: \(error)")
        }
        guard let object = value.object else {
            throw SQLiteError(code: .corrupt, message: "The database has an entity that is not a JSON object.")
        }
        return object
    }

    // MARK: JSON

    /// Appends an entity as `viewer` sees it; nil if it does not exist.
    func append(_ id: EntityID, viewer: Int64, to bytes: inout [UInt8]) throws(SQLiteError) -> EntityVersion? {
        try sql.first(
            "SELECT id, list, head, version, updated FROM entities WHERE kind = ? AND id = ? AND deleted = 0",
            [id.kind.rawValue, id.row]
        ) { row throws(SQLiteError) in
            try append(row, id.kind, viewer: viewer, to: &bytes)
            return row.version(3)
        }
    }

    /// Appends the entity of the current row: id, list, head, version and updated.
    private func append(
        _ row: Statement,
        _ kind: EntityKind,
        viewer: Int64,
        to bytes: inout [UInt8]
    ) throws(SQLiteError) {
        if kind == .transaction { return try LedgerTable(sql: sql).append(transaction: row.int64(0), to: &bytes) }
        row.append(2, to: &bytes)
        if kind == .document { return bytes.append(UInt8(ascii: "}")) }
        if kind == .post {
            let isLiked = viewer == 0 ? false : try LikeTable(sql: sql).has(user: viewer, post: row.int64(0))
            bytes.append(isLiked ? ",\"likedByMe\":true" : ",\"likedByMe\":false")
        }
        bytes.append(row.version(3))
    }

    // MARK: Lists

    static func indexEntry(_ id: EntityID, version: Int64) -> [UInt8] {
        Array(#"{"id":"\#(id.text)","version":\#(version)}"#.utf8)
    }

    /// Up to `limit` entities of a list in a form, newest first.
    func page(
        _ start: PageStart,
        of list: EntityList,
        viewer: Int64 = 0,
        limit: Int,
        form: ItemForm = .whole
    ) throws(SQLiteError) -> [(row: Int64, list: Int64, json: [UInt8])] {
        let isBackward = if case .before = start { true } else { false }
        let place: SQLText = isBackward ? "id > ?3 ORDER BY id" : "id < ?3 ORDER BY id DESC"
        let items = try sql.all(
            """
            SELECT id, list, head, version, updated FROM entities
            WHERE kind = ?1 AND \(list.condition) AND deleted = 0 AND \(place) LIMIT ?4
            """,
            [list.kind.rawValue, list.value, start.row, limit]
        ) { row throws(SQLiteError) in
            var json: [UInt8] = []
            switch form {
            case .whole: try append(row, list.kind, viewer: viewer, to: &json)
            case .index: json = Self.indexEntry(EntityID(list.kind, row.int64(0)), version: row.int64(3))
            }
            return (row: row.int64(0), list: row.int64(1), json: json)
        }
        return isBackward ? items.reversed() : items
    }

    /// Up to `limit` entities of a list behind a row, oldest first.
    func page(after row: Int64, of list: EntityList, limit: Int) throws(SQLiteError) -> [(row: Int64, json: [UInt8])] {
        try page(.before(row), of: list, limit: limit).reversed().map { ($0.row, $0.json) }
    }

    /// The lowest and highest row of a list.
    func extent(_ list: EntityList) throws(SQLiteError) -> ClosedRange<Int64>? {
        let rows: SQLText = "FROM entities WHERE kind = ?1 AND \(list.condition) AND deleted = 0"
        let values: [any SQLValue] = [list.kind.rawValue, list.value]
        return try sql.first("SELECT (SELECT min(id) \(rows)), (SELECT max(id) \(rows))", values) { row in
            row.optional(0).map { $0...row.int64(1) }
        } ?? nil
    }

    func count(_ kind: EntityKind) throws(SQLiteError) -> Int64 {
        try sql.integer("SELECT count(*) FROM entities WHERE kind = ? AND deleted = 0", [kind.rawValue]) ?? 0
    }

    /// The posts before a row, newest first, or the people behind one, whose texts have all words.
    ///
    /// - Parameter maximum: how many entities are looked at.
    /// - Returns: their rows, and the last row that was looked at if there are others behind it.
    func search(
        _ words: [String],
        in kind: EntityKind,
        from row: Int64?,
        limit: Int,
        scanning maximum: Int
    ) throws(SQLiteError) -> (rows: [Int64], rest: Int64?) {
        let isOfPosts = kind == .post
        let place: SQLText = isOfPosts ? "id < ?2 ORDER BY id DESC" : "id > ?2 ORDER BY id"
        let heads = try sql.bound(
            "SELECT id, head FROM entities WHERE kind = ?1 AND deleted = 0 AND \(place) LIMIT ?3",
            [kind.rawValue, row ?? (isOfPosts ? .max : 0), maximum + 1]
        )
        defer { heads.reset() }
        var (found, seen, rest): ([Int64], Int, Int64?) = ([], 0, nil)
        while try heads.step() {
            // One more than the page, so that a full page knows whether it is the last.
            if found.count == limit || seen == maximum { return (found, rest) }
            seen += 1
            rest = heads.int64(0)
            let members = try Self.members(heads.bytes(1))
            let texts = (isOfPosts ? ["text"] : ["handle", "displayName", "bio", "location"]).map {
                members[$0]?.string
            }
            let text = texts.compactMap { $0?.lowercased() }.joined(separator: "\n")
            if words.allSatisfy({ text.contains($0) }) { found.append(heads.int64(0)) }
        }
        return (found, nil)
    }

    // MARK: The change feed

    /// The changes after a position, oldest first.
    func changes(after position: Int64, limit: Int) throws(SQLiteError) -> [ChangeRow] {
        try sql.all(
            """
            SELECT position, kind, id, list, deleted, updated, version FROM entities WHERE position > ?
            ORDER BY position LIMIT ?
            """,
            [position, limit]
        ) { row throws(SQLiteError) in
            ChangeRow(
                position: row.int64(0),
                entity: EntityID(try Self.kind(row.int64(1)), row.int64(2)),
                list: row.int64(3),
                isDeleted: row.bool(4),
                at: row.time(5),
                version: row.int64(6)
            )
        }
    }

    /// The position of the newest change ever recorded; 0 if there is none.
    func newestPosition() throws(SQLiteError) -> Int64 {
        try sql.integer("SELECT seq FROM sqlite_sequence WHERE name = 'entities'") ?? 0
    }

    /// The position of the newest tombstone that is older than `horizon`.
    func newestTombstone(before horizon: WallTime) throws(SQLiteError) -> Int64? {
        try sql.integer("SELECT max(position) FROM entities WHERE deleted = 1 AND updated < ?", [horizon])
    }

    /// Removes the tombstones that are older than `horizon`, except that of the last entity of a kind, whose identity would be given again.
    func forgetTombstones(before horizon: WallTime) throws(SQLiteError) {
        try sql.run(
            """
            DELETE FROM entities WHERE deleted = 1 AND updated < ?
            AND id < (SELECT max(id) FROM entities AS other WHERE other.kind = entities.kind)
            """,
            [horizon]
        )
    }
}
