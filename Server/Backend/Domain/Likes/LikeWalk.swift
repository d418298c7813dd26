import LarderSQLite

/// The posts that somebody likes, read beside a list of posts in the same order, newest first: one statement for a page
/// instead of a look-up for every post.
struct LikeWalk {
    private let statement: Statement
    /// The newest liked post that the list has not passed; nil when there are no more.
    private var liked: Int64?

    /// - Parameters:
    ///   - statement: gives the numbers of the liked posts of a person below a number, in falling order. Its user resets it.
    ///   - start: no post of the list has this number or a higher one.
    init(_ statement: Statement, viewer: Int64, below start: Int64) throws(SQLiteError) {
        self.statement = statement
        try statement.bind(viewer, at: 1)
        try statement.bind(start, at: 2)
        liked = try statement.step() ? statement.int64(0) : nil
    }

    /// Whether a liked post can come before the list has passed that number.
    func reaches(_ row: Int64) -> Bool { liked.map { $0 >= row } ?? false }

    /// Whether the list's next post is liked. Numbers must fall from call to call.
    mutating func includes(_ row: Int64) throws(SQLiteError) -> Bool {
        while let current = liked, current > row { liked = try statement.step() ? statement.int64(0) : nil }
        return liked == row
    }
}
