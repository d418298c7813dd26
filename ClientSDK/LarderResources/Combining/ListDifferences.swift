extension LarderCache {
    /// The lists of a sequence, each with the edits that turn the one before into it: for a view that moves rows. The first is compared with an
    /// empty list; a slow reader gets the edits since the list that it has got. Equal lists are left out.
    public struct Differences<Base: AsyncSequence & Sendable, Item: Identifiable & Equatable & Sendable>: AsyncSequence,
        Sendable
    where Base.Failure == Never, Item.ID: Sendable {
        /// A list and the edits that lead to it.
        public struct Element: Sendable {
            public let items: [Item]
            public let difference: ListDifference<Item.ID>
        }

        /// Returns elements in order.
        public struct Iterator: AsyncIteratorProtocol {
            fileprivate var base: Base.AsyncIterator
            fileprivate let items: @Sendable (Base.Element) -> [Item]?
            fileprivate var last: [Item]?

            /// The next list that differs; nil at the end.
            public mutating func next() async -> Element? {
                while let element = await base.next(isolation: nil) {
                    guard let items = items(element), items != last else { continue }
                    defer { last = items }
                    return Element(items: items, difference: ListDifference(from: last ?? [], to: items))
                }
                return nil
            }
        }

        let base: Base
        let items: @Sendable (Base.Element) -> [Item]?

        public func makeAsyncIterator() -> Iterator { Iterator(base: base.makeAsyncIterator(), items: items) }
    }
}

extension Snapshots {
    /// The lists of the snapshots with the edits between them. Snapshots without a value are left out.
    public func differences<Item>() -> LarderCache.Differences<Self, Item> where Value == EntityList<Item> {
        LarderCache.Differences(base: self) { $0.value?.items }
    }
}

extension EntityQuery.Updates {
    /// The results with the edits between them.
    public func differences() -> LarderCache.Differences<Self, Entity> { LarderCache.Differences(base: self) { $0 } }
}
