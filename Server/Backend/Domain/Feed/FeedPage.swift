import LarderSQLite

/// What a page of posts holds besides the JSON that was appended.
struct PostPage {
    var rows: [Int64] = []
    var authors: [Int64] = []
    /// Whether there is more in the direction of reading.
    var hasMore = false
    /// What tells the items from any other page's, shorter than they are; empty where nobody has made it.
    var digest: [UInt8] = []
}

/// A page of the feed while it is put together.
struct FeedPage {
    /// The number below which the page goes on: its last post's, or the one that it began below.
    private(set) var end: Int64
    private let limit: Int
    private var likes: LikeWalk?
    private var bytes: [UInt8]
    private var page = PostPage()

    /// - Parameter bytes: what the posts are appended to: taken, so that they have one owner, until `finish` gives them back.
    init(below start: Int64, limit: Int, likes: LikeWalk?, bytes: inout [UInt8]) {
        end = start
        self.limit = limit
        self.likes = likes
        self.bytes = bytes
        bytes = []
        page.rows.reserveCapacity(limit)
        page.authors.reserveCapacity(limit)
        page.digest.reserveCapacity(limit * 16 + 160)
    }

    var isFull: Bool { page.rows.count >= limit }

    /// How many posts have room on the page.
    var room: Int { limit - page.rows.count }

    /// Adds a post from the shelf.
    mutating func add(_ post: ShelvedPost) throws(SQLiteError) {
        let isLiked = try likes?.includes(post.row) ?? false
        end = post.row
        page.rows.append(post.row)
        page.authors.append(post.author)
        post.append(isLiked: isLiked, to: &bytes, digest: &page.digest)
    }

    /// Adds the post that a statement stands on: id, head, likes, version, updated and author in its first columns. Its bytes
    /// are written where they are sent from, and copied only if they are to be kept.
    ///
    /// - Returns: the post for the shelf, if it is wanted.
    mutating func add(_ statement: Statement, isWanted: Bool) throws(SQLiteError) -> ShelvedPost? {
        let (row, author) = (statement.int64(0), statement.int64(5))
        let isLiked = try likes?.includes(row) ?? false
        end = row
        page.rows.append(row)
        page.authors.append(author)
        let start = bytes.count
        let likeStart = PostJSON.append(statement, isLiked: false, to: &bytes)
        bytes.append(UInt8(ascii: ","))
        let digest = PostDigest(bytes.span.extracting(start..<bytes.count))
        digest.append(isLiked: isLiked, to: &page.digest)
        var post: ShelvedPost?
        if isWanted {
            let json = Array(bytes[start...])
            post = ShelvedPost(row: row, author: author, json: json, likeStart: likeStart - start, digest: digest)
        }
        if isLiked { bytes.replaceSubrange(likeStart..<(likeStart + "false".utf8.count), with: "true".utf8) }
        return post
    }

    consuming func finish(hasMore: Bool, _ bytes: inout [UInt8]) -> PostPage {
        bytes = self.bytes
        self.bytes = []
        // The comma behind the last.
        if !page.rows.isEmpty { bytes.removeLast() }
        page.hasMore = hasMore
        return page
    }
}
