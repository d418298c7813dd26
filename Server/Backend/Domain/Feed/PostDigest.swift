import LarderCoding

/// What tells a post in one state from any other post or state: 128 bits of its JSON's hash, from which a page's entity tag is
/// made.
struct PostDigest: Sendable {
    /// As it is stored, and as it counts for somebody who does not like the post.
    let words: (UInt64, UInt64)

    static let byteCount = 16

    /// - Parameter json: the post for somebody who does not like it, and the comma behind it.
    init(_ json: Span<UInt8>) { words = ContentHash.hash128(json) }

    init(stored: (UInt64, UInt64)) { words = stored }

    func append(isLiked: Bool, to bytes: inout [UInt8]) {
        var words = (words.0.littleEndian, (isLiked ? ~words.1 : words.1).littleEndian)
        unsafe withUnsafeBytes(of: &words) { unsafe bytes.append(contentsOf: $0) }
    }
}
