import LarderSQLite
import LarderTime

/// The JSON of a post out of its row.
enum PostJSON {
    /// Appends the post that a statement stands on: id, head, likes, version, updated in columns 0 to 4.
    ///
    /// - Returns: where the value of `likedByMe` begins.
    @discardableResult static func append(_ statement: Statement, isLiked: Bool, to bytes: inout [UInt8]) -> Int {
        statement.append(1, to: &bytes)
        let updated = WallTime(milliseconds: statement.int64(4))
        return end(likes: statement.int64(2), isLiked: isLiked, version: statement.int64(3), updated: updated, &bytes)
    }

    /// Appends what comes behind a post's head.
    ///
    /// - Returns: where the value of `likedByMe` begins.
    static func end(likes: Int64, isLiked: Bool, version: Int64, updated: WallTime, _ bytes: inout [UInt8]) -> Int {
        bytes.append(",\"likeCount\":")
        bytes.append(decimal: likes)
        bytes.append(isLiked ? ",\"likedByMe\":true,\"version\":" : ",\"likedByMe\":false,\"version\":")
        let end = bytes.count - ",\"version\":".utf8.count
        bytes.append(decimal: version)
        bytes.append(",\"updatedAt\":")
        bytes.append(timestamp: updated)
        bytes.append(UInt8(ascii: "}"))
        return end - (isLiked ? 4 : 5)
    }
}
