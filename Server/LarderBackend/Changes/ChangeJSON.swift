import LarderCoding
import LarderSQLite

/// Encodes a change, in the same form for the change feed and for live events.
enum ChangeJSON {
    /// The change as `viewer` sees it.
    ///
    /// An entity that no longer exists is encoded as deleted, whatever the change row says: the feed shows the latest state.
    static func encode(_ change: ChangeRow, viewer: Int64, from store: Store) throws(SQLiteError) -> [UInt8] {
        var (type, id) = ("\(change.entity.kind.name)", change.entity.json)
        if change.entity.kind == .document {
            let document = try store.entities.find(at: change.position)
            type = try store.collections.name(change.list)
            id = document?.name == "" ? .string("") : document?.members["id"] ?? .null
        }
        let head = JSONValue.members([
            "type": .string(type), "id": id, "at": change.at.json, "version": .integer(change.version),
        ])
        let entity = try change.isDeleted ? [] : store.json(change.entity.kind, change.entity.row, viewer: viewer)
        let end =
            entity.isEmpty
            ? Array(",\"op\":\"delete\"}".utf8)
            : Array(",\"op\":\"upsert\",\"entity\":".utf8) + entity + [UInt8(ascii: "}")]
        return head.encoded.dropLast() + end
    }
}
