import LarderSQLite

/// A page of the feed while it is put together.
struct FeedPage {
    /// The number below which the page goes on: its last post's, or the one that it began below.
    private(set) var end: Int64
    private var room: Int
    private let wantsAuthors: Bool
    private var likes: LikeWalk?
    private var bytes: [UInt8]
    private var page = PostPage()

    /// - Parameter bytes: what the posts are appended to: taken, so that they have one owner, until `finish` gives them back.
    init(below start: Int64, limit: Int, wantsAuthors: Bool, likes: LikeWalk?, bytes: inout [UInt8]) {
        end = start
        room = limit
        self.wantsAuthors = wantsAuthors
        self.likes = likes
        self.bytes = []
        swap(&self.bytes, &bytes)
        // With room for what an entity tag is made of besides.
        page.digest.reserveCapacity(limit * PostDigest.byteCount + 160)
    }

    var isFull: Bool { room <= 0 }

    /// Adds as many posts of a chunk as belong on the page and have room there.
    mutating func add(_ chunk: Span<UInt8>, _ layout: FeedChunkLayout) throws(SQLiteError) {
        var first = 0
        while first < layout.count, layout.row(first, in: chunk) >= end { first += 1 }
        let posts = first..<min(layout.count, first + room)
        guard !posts.isEmpty else { return }
        if page.newest == nil { page.newest = layout.row(first, in: chunk) }
        end = layout.row(posts.upperBound - 1, in: chunk)
        room -= posts.count
        if wantsAuthors { for index in posts { page.authors.append(layout.author(index, in: chunk)) } }
        var copied = layout.textStart(first, in: chunk)
        if likes?.reaches(end) ?? false {
            for index in posts {
                let isLiked = try likes?.includes(layout.row(index, in: chunk)) ?? false
                layout.digest(index, in: chunk).append(isLiked: isLiked, to: &page.digest)
                guard isLiked else { continue }
                let like = layout.likeStart(index, in: chunk)
                bytes.append(chunk.extracting(copied..<like))
                bytes.append("true")
                copied = like + FeedChunkLayout.unliked.utf8CodeUnitCount
            }
        } else {
            page.digest.append(chunk.extracting(layout.digests(posts)))
        }
        bytes.append(chunk.extracting(copied..<layout.textEnd(posts.upperBound - 1, in: chunk)))
    }

    /// Adds the post that a statement stands on: id, head, likes, version, updated and author in its first columns.
    mutating func add(_ statement: Statement) throws(SQLiteError) {
        let row = statement.int64(0)
        let isLiked = try likes?.includes(row) ?? false
        if page.newest == nil { page.newest = row }
        end = row
        room -= 1
        if wantsAuthors { page.authors.append(statement.int64(5)) }
        let start = bytes.count
        let like = PostJSON.append(statement, isLiked: false, to: &bytes)
        bytes.append(UInt8(ascii: ","))
        PostDigest(bytes.span.extracting(start..<bytes.count)).append(isLiked: isLiked, to: &page.digest)
        guard isLiked else { return }
        bytes.replaceSubrange(like..<(like + FeedChunkLayout.unliked.utf8CodeUnitCount), with: "true".utf8)
    }

    /// Ends the page, and gives back the bytes that it was begun with.
    mutating func finish(_ bytes: inout [UInt8]) -> PostPage {
        swap(&self.bytes, &bytes)
        guard page.newest != nil else { return page }
        page.oldest = end
        // The comma behind the last.
        bytes.removeLast()
        return page
    }
}

extension [UInt8] {
    fileprivate mutating func append(_ span: Span<UInt8>) {
        unsafe span.withUnsafeBufferPointer { unsafe append(contentsOf: $0) }
    }
}
