import LarderSQLite
import LarderTime

/// A chunk of the feed, taken apart so that it can be changed (`FeedChunkLayout`).
struct FeedChunk {
    struct Post {
        let row: Int64
        let author: Int64
        /// The post for somebody who does not like it, and the comma behind it.
        let json: ArraySlice<UInt8>
        /// How far behind the beginning of the JSON the value of `likedByMe` begins.
        let likeOffset: Int
        let digest: PostDigest

        /// - Parameter json: the post for somebody who does not like it, and the comma behind it.
        init(row: Int64, author: Int64, json: ArraySlice<UInt8>, likeOffset: Int) {
            self.row = row
            self.author = author
            self.json = json
            self.likeOffset = likeOffset
            digest = PostDigest(json.span)
        }

        /// The post that a statement stands on: id, head, likes, version, updated and author in its first columns.
        init(_ statement: Statement) {
            var json: [UInt8] = []
            json.reserveCapacity(512)
            let like = PostJSON.append(statement, isLiked: false, to: &json)
            json.append(UInt8(ascii: ","))
            self.init(row: statement.int64(0), author: statement.int64(5), json: json[...], likeOffset: like)
        }

        /// A post out of what is stored of it.
        init(row: Int64, author: Int64, head: [UInt8], likes: Int64, version: Int64, updated: WallTime) {
            var json: [UInt8] = []
            json.reserveCapacity(head.count + 128)
            json.append(contentsOf: head)
            let like = PostJSON.end(likes: likes, isLiked: false, version: version, updated: updated, &json)
            json.append(UInt8(ascii: ","))
            self.init(row: row, author: author, json: json[...], likeOffset: like)
        }

        /// Appends the post, without a comma, as somebody sees it who likes it or not.
        func append(isLiked: Bool, to bytes: inout [UInt8]) {
            let like = json.startIndex + likeOffset
            bytes.append(contentsOf: json[..<like])
            bytes.append(isLiked ? "true" : FeedChunkLayout.unliked)
            bytes.append(contentsOf: json[(like + FeedChunkLayout.unliked.utf8CodeUnitCount)...].dropLast())
        }

        fileprivate init(_ index: Int, of layout: FeedChunkLayout, in bytes: [UInt8]) {
            let span = bytes.span
            let start = layout.textStart(index, in: span)
            row = layout.row(index, in: span)
            author = layout.author(index, in: span)
            json = bytes[start..<layout.textEnd(index, in: span)]
            likeOffset = layout.likeStart(index, in: span) - start
            digest = layout.digest(index, in: span)
        }
    }

    /// Newest first.
    private(set) var posts: [Post] = []

    /// An empty one, which cannot be stored.
    init() {}

    /// Nil for bytes that are no chunk.
    init?(_ bytes: [UInt8]) {
        guard let layout = FeedChunkLayout(bytes.span) else { return nil }
        posts.reserveCapacity(FeedChunkLayout.room)
        for index in 0..<layout.count { posts.append(Post(index, of: layout, in: bytes)) }
    }

    /// Puts a post where it belongs, in place of what is there of it.
    mutating func put(_ post: Post) {
        let place = posts.firstIndex { $0.row <= post.row } ?? posts.count
        if place < posts.count, posts[place].row == post.row {
            posts[place] = post
        } else {
            posts.insert(post, at: place)
        }
    }

    mutating func remove(_ row: Int64) { posts.removeAll { $0.row == row } }

    /// Puts a post in the place of itself in a stored chunk, where it is as long as it was: as a rule, when it is liked.
    ///
    /// - Returns: whether that could be done; otherwise nothing was.
    static func replace(_ post: Post, in bytes: inout [UInt8]) -> Bool {
        guard let layout = FeedChunkLayout(bytes.span),
            let index = (0..<layout.count).first(where: { layout.row($0, in: bytes.span) == post.row })
        else { return false }
        let text = layout.textStart(index, in: bytes.span)..<layout.textEnd(index, in: bytes.span)
        guard text.count == post.json.count,
            layout.likeStart(index, in: bytes.span) == text.lowerBound + post.likeOffset
        else { return false }
        var digest: [UInt8] = []
        post.digest.append(isLiked: false, to: &digest)
        bytes.replaceSubrange(layout.digests(index..<(index + 1)), with: digest)
        bytes.replaceSubrange(text, with: post.json)
        return true
    }

    /// The chunk as it is stored.
    var bytes: [UInt8] {
        let textsStart = FeedChunkLayout.textsStart(posts.count)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(posts.reduce(textsStart) { $0 + $1.json.count })
        bytes.append(word: UInt64(posts.count))
        for post in posts { bytes.append(word: UInt64(bitPattern: post.row)) }
        for post in posts { bytes.append(word: UInt64(bitPattern: post.author)) }
        for post in posts { post.digest.append(isLiked: false, to: &bytes) }
        var end = 0
        for post in posts {
            end += post.json.count
            bytes.append(halfWord: UInt32(end))
        }
        end = 0
        for post in posts {
            bytes.append(halfWord: UInt32(end + post.likeOffset))
            end += post.json.count
        }
        for post in posts { bytes.append(contentsOf: post.json) }
        return bytes
    }
}

extension [UInt8] {
    fileprivate mutating func append(word: UInt64) {
        unsafe Swift.withUnsafeBytes(of: word.littleEndian) { unsafe append(contentsOf: $0) }
    }

    fileprivate mutating func append(halfWord: UInt32) {
        unsafe Swift.withUnsafeBytes(of: halfWord.littleEndian) { unsafe append(contentsOf: $0) }
    }
}
