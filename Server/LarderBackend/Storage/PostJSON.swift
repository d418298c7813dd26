import LarderSQLite
import LarderTime

/// Encodes a post from its row.
enum PostJSON {
    /// Appends the post of a statement's current row: id, head, likes, version and updated in columns 0 to 4.
    static func append(_ statement: Statement, isLiked: Bool, form: ItemForm = .whole, to bytes: inout [UInt8]) {
        if form == .index {
            return bytes.append(entryOf: EntityID(.post, statement.int64(0)), version: statement.int64(3))
        }
        statement.append(1, to: &bytes)
        bytes.append(",\"likeCount\":")
        bytes.append(decimal: statement.int64(2))
        bytes.append(isLiked ? ",\"likedByMe\":true,\"version\":" : ",\"likedByMe\":false,\"version\":")
        bytes.append(decimal: statement.int64(3))
        bytes.append(",\"updatedAt\":")
        bytes.append(timestamp: WallTime(milliseconds: statement.int64(4)))
        bytes.append(UInt8(ascii: "}"))
    }
}
