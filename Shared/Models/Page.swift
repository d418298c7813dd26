/// A page of a list that is read by cursor.
public struct Page<Item: Codable & Sendable & Hashable>: Codable, Sendable, Hashable {
    /// The items, in the order of the list.
    public var items: [Item]
    /// Where the next page begins; nil at the end.
    public var nextCursor: String?
    /// Where the page before begins; nil at the beginning.
    public var previousCursor: String?
}
