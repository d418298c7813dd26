import LarderSQLite
import LarderTime

/// The JSON of a post out of its row.
enum PostJSON {
    /// Appends the post that a statement stands on: id, head, likes, version, updated in columns 0 to 4.
    ///
    /// - Returns: where the value of `likedByMe` ends.
    @discardableResult static func append(_ statement: Statement, isLiked: Bool, to bytes: inout [UInt8]) -> Int {
        statement.append(1, to: &bytes)
        bytes.append(",\"likeCount\":")
        bytes.append(decimal: statement.int64(2))
        bytes.append(isLiked ? ",\"likedByMe\":true" : ",\"likedByMe\":false")
        let end = bytes.count
        bytes.append(version: statement.int64(3), updated: WallTime(milliseconds: statement.int64(4)))
        return end
    }
}
