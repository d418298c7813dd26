import LarderCoding
import LarderSQLite

/// Encodes a change, in the same form for the change feed and for live events.
enum ChangeJSON {
    /// Appends the change as `viewer` sees it.
    ///
    /// An entity that no longer exists is encoded as deleted, whatever the change row says: the feed shows the latest state.
    static func append(_ change: ChangeRow, viewer: Int64, from store: Store, to bytes: inout [UInt8])
        throws(SQLiteError)
    {
        if change.entity.kind == .document {
            let (type, id) = try store.documents.name(change.entity.row)
            bytes.append(contentsOf: JSONValue.members(["type": .string(type), "id": id]).encoded.dropLast())
        } else {
            bytes.append("{\"type\":\"")
            bytes.append(change.entity.kind.name)
            bytes.append("\",\"id\":")
            bytes.append(identifier: change.entity)
        }
        bytes.append(",\"at\":")
        bytes.append(timestamp: change.at)
        bytes.append(",\"version\":")
        bytes.append(decimal: change.version)
        if !change.isDeleted {
            let end = bytes.count
            bytes.append(",\"op\":\"upsert\",\"entity\":")
            if try store.append(change.entity, viewer: viewer, to: &bytes) != nil {
                bytes.append(UInt8(ascii: "}"))
                return
            }
            bytes.removeLast(bytes.count - end)
        }
        bytes.append(",\"op\":\"delete\"}")
    }
}
