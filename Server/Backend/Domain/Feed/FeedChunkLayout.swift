/// Where things lie in a stored chunk of the feed.
///
/// A chunk holds the posts whose numbers differ in their last four bits only, newest first: their count, then all their
/// numbers, their authors, their digests, where their texts end, where in them the value of `likedByMe` begins, and then the
/// texts themselves, each the post's JSON for somebody who does not like it and the comma behind it. Whole numbers are
/// little-endian, of 8 bytes up to the digests and of 4 behind them. What a page needs of several posts thus lies together
/// and is copied at once.
struct FeedChunkLayout {
    let count: Int

    /// How many posts a chunk has room for.
    static let room = 16
    /// Changes with the form of a chunk, and then asks for a migration that makes all of them anew.
    static let format: UInt64 = 1

    /// The number of the chunk in which a post lies.
    static func chunk(of row: Int64) -> Int64 { row >> 4 }

    /// Which posts lie in a chunk, for people.
    static func posts(of chunk: Int64) -> String {
        "\(EntityID(.post, max(1, chunk << 4)).text) to \(EntityID(.post, chunk << 4 + 15).text)"
    }

    /// Nil for bytes that are no chunk: whatever it says of others lies within them.
    init?(_ bytes: Span<UInt8>) {
        guard bytes.count >= 8 else { return nil }
        let stored = Self.word(bytes, at: 0)
        guard stored >= 1, stored <= UInt64(Self.room), bytes.count >= Self.textsStart(Int(stored)) else { return nil }
        count = Int(stored)
        var last = textsStart
        for index in 0..<count {
            let (end, like) = (textEnd(index, in: bytes), likeStart(index, in: bytes))
            guard like >= last, like + Self.unliked.utf8CodeUnitCount <= end, end <= bytes.count,
                index == 0 || row(index, in: bytes) < row(index - 1, in: bytes)
            else { return nil }
            last = end
        }
        guard last == bytes.count else { return nil }
    }

    /// What a text says of `likedByMe`.
    static let unliked: StaticString = "false"

    // MARK: Reading

    func row(_ index: Int, in bytes: Span<UInt8>) -> Int64 {
        Int64(bitPattern: Self.word(bytes, at: 8 + 8 * index))
    }

    func author(_ index: Int, in bytes: Span<UInt8>) -> Int64 {
        Int64(bitPattern: Self.word(bytes, at: 8 + 8 * count + 8 * index))
    }

    func digest(_ index: Int, in bytes: Span<UInt8>) -> PostDigest {
        let start = digests(index..<index).lowerBound
        return PostDigest(stored: (Self.word(bytes, at: start), Self.word(bytes, at: start + 8)))
    }

    /// Where the digests of some posts lie.
    func digests(_ posts: Range<Int>) -> Range<Int> {
        let start = 8 + 16 * count
        return (start + PostDigest.byteCount * posts.lowerBound)..<(start + PostDigest.byteCount * posts.upperBound)
    }

    func textStart(_ index: Int, in bytes: Span<UInt8>) -> Int {
        index == 0 ? textsStart : textEnd(index - 1, in: bytes)
    }

    func textEnd(_ index: Int, in bytes: Span<UInt8>) -> Int {
        textsStart + Self.halfWord(bytes, at: 8 + 32 * count + 4 * index)
    }

    func likeStart(_ index: Int, in bytes: Span<UInt8>) -> Int {
        textsStart + Self.halfWord(bytes, at: 8 + 36 * count + 4 * index)
    }

    private var textsStart: Int { Self.textsStart(count) }

    static func textsStart(_ count: Int) -> Int { 8 + 40 * count }

    private static func word(_ bytes: Span<UInt8>, at offset: Int) -> UInt64 {
        UInt64(littleEndian: unsafe bytes.bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }

    private static func halfWord(_ bytes: Span<UInt8>, at offset: Int) -> Int {
        Int(UInt32(littleEndian: unsafe bytes.bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt32.self)))
    }
}
