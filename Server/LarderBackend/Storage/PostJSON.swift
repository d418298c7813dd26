import LarderSQLite

/// Encodes a post from its row.
enum PostJSON {
    /// Appends the post of a statement's current row: id, head, likes, version, updated, author, and the viewer if it likes the post.
    static func append(_ statement: Statement, form: ItemForm = .whole, to bytes: inout [UInt8]) {
        if form == .index {
            return bytes.append(entryOf: EntityID(.post, statement.int64(0)), version: statement.int64(3))
        }
        statement.append(1, to: &bytes)
        bytes.append(",\"likeCount\":")
        bytes.append(decimal: statement.int64(2))
        bytes.append(statement.isNull(6) ? ",\"likedByMe\":false" : ",\"likedByMe\":true")
        bytes.append(statement.version(3))
    }
}
