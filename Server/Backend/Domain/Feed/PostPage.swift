/// What a page of posts holds besides the JSON that was appended.
struct PostPage {
    /// The numbers of its first and of its last post, of which the first is the highest; nil for a page without posts.
    var newest: Int64?
    var oldest: Int64?
    /// Who wrote them, in their order, where that was asked for.
    var authors: [Int64] = []
    /// What tells the items from any other page's, shorter than they are; empty where nobody has made it.
    var digest: [UInt8] = []
}
