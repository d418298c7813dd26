/// What a page of posts returns besides the appended JSON.
struct PostPage {
    /// The rows of its first and last post (the first is the highest); nil for an empty page.
    var newest: Int64?
    var oldest: Int64?
    /// The authors of the posts, in the order of the posts.
    var authors: [Int64] = []
}
