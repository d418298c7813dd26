/// What is wrong with the answer to a read of the change feed.
public enum ChangePageFault: String, Sendable, Hashable, CaseIterable {
    /// The token of the request has expired: the reader must begin anew.
    case expired
    /// The page is sent, and its next token is the token of the request.
    case repeated
    /// The page is empty and says that there is more.
    case empty
    /// The items are in reverse order: a reference precedes the entity that it refers to.
    case reversed
    /// All tombstones are forgotten before: a reader that has not read them must begin anew.
    case noTombstones
}
