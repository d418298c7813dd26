import LarderCoding

/// A post as it is sent, and what a page needs to know of it besides. Immutable.
final class ShelvedPost: Sendable {
    let row: Int64
    let author: Int64
    /// The post for somebody who does not like it, and the comma behind it.
    private let json: [UInt8]
    /// Where in the JSON the value of `likedByMe` begins, which is `false`.
    private let likeStart: Int
    private let digest: PostDigest

    init(row: Int64, author: Int64, json: [UInt8], likeStart: Int, digest: PostDigest) {
        self.row = row
        self.author = author
        self.json = json
        self.likeStart = likeStart
        self.digest = digest
    }

    var byteCount: Int { json.count }

    /// Appends the post and a comma, as somebody sees it who likes it or not, and what tells it from any other.
    func append(isLiked: Bool, to bytes: inout [UInt8], digest digests: inout [UInt8]) {
        digest.append(isLiked: isLiked, to: &digests)
        guard isLiked else { return bytes.append(contentsOf: json) }
        bytes.append(contentsOf: json[..<likeStart])
        bytes.append("true")
        bytes.append(contentsOf: json[(likeStart + "false".utf8.count)...])
    }
}

/// What tells a post in one state from any other post or state: 128 bits of its JSON's hash, from which a page's entity tag is
/// made.
struct PostDigest: Sendable {
    private let words: (UInt64, UInt64)

    /// - Parameter json: the post for somebody who does not like it, and the comma behind it.
    init(_ json: Span<UInt8>) { words = ContentHash.hash128(json) }

    func append(isLiked: Bool, to bytes: inout [UInt8]) {
        var words = (words.0.littleEndian, (isLiked ? ~words.1 : words.1).littleEndian)
        unsafe withUnsafeBytes(of: &words) { unsafe bytes.append(contentsOf: $0) }
    }
}
