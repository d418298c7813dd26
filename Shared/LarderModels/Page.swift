/// A page of a list with cursors.
public struct Page<Item: Codable & Sendable & Hashable>: Codable, Sendable, Hashable {
    /// The items, in the order of the list.
    public var items: [Item]
    /// The cursor of the next page; nil on the last page.
    public var nextCursor: String?
    /// The cursor of the previous page; nil on the first page.
    public var previousCursor: String?
}
