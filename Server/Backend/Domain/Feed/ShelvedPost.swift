import LarderCoding
import LarderSQLite

/// A post as it is sent, and what a page needs to know of it besides. Immutable.
final class ShelvedPost: Sendable {
    let row: Int64
    let author: Int64
    /// The post for somebody who does not like it, and the comma behind it.
    private let json: [UInt8]
    /// Where in the JSON the value of `likedByMe` begins, which is `false`.
    private let likeStart: Int
    /// The hash of the JSON, from which a page's entity tag is made.
    private let digest: (UInt64, UInt64)

    /// The post that a statement stands on: id, head, likes, version, updated and author in its first columns.
    init(_ statement: Statement) {
        row = statement.int64(0)
        author = statement.int64(5)
        var json: [UInt8] = []
        json.reserveCapacity(640)
        likeStart = PostJSON.append(statement, isLiked: false, to: &json) - "false".utf8.count
        json.append(UInt8(ascii: ","))
        digest = ContentHash.hash128(json.span)
        self.json = json
    }

    var byteCount: Int { json.count }

    /// Appends the post and a comma, as somebody sees it who likes it or not.
    func append(isLiked: Bool, to bytes: inout [UInt8]) {
        guard isLiked else { return bytes.append(contentsOf: json) }
        bytes.append(contentsOf: json[..<likeStart])
        bytes.append("true")
        bytes.append(contentsOf: json[(likeStart + "false".utf8.count)...])
    }

    /// Appends what tells this post, in this state and seen like that, from any other.
    func appendDigest(isLiked: Bool, to bytes: inout [UInt8]) {
        var words = (digest.0.littleEndian, (isLiked ? ~digest.1 : digest.1).littleEndian)
        unsafe withUnsafeBytes(of: &words) { unsafe bytes.append(contentsOf: $0) }
    }
}
