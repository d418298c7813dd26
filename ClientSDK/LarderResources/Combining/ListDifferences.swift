/// The lists of a sequence, each with the edits that turn the one before into it.
private struct ListDifferences<Base: AsyncSequence & Sendable, Item: Identifiable & Equatable & Sendable>:
    AsyncSequence, Sendable
where Base.Failure == Never, Item.ID: Sendable {
    typealias Element = (items: [Item], difference: ListDifference<Item.ID>)

    struct AsyncIterator: AsyncIteratorProtocol {
        var base: Base.AsyncIterator
        let items: @Sendable (Base.Element) -> [Item]?
        var last: [Item]?

        mutating func next() async -> Element? {
            while let element = await base.next(isolation: nil) {
                guard let items = items(element), items != last else { continue }
                defer { last = items }
                return (items, ListDifference(from: last ?? [], to: items))
            }
            return nil
        }
    }

    let base: Base
    let items: @Sendable (Base.Element) -> [Item]?

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(base: base.makeAsyncIterator(), items: items) }
}

extension AsyncSequence where Self: Sendable, Failure == Never {
    /// The lists of a sequence, each with the edits that turn the one before into it: for a view that moves rows. The first is compared with an
    /// empty list; a slow reader gets the edits since the list that it has got. Equal lists are left out.
    public func differences<Item: Identifiable & Equatable & Sendable>()
        -> some AsyncSequence<(items: [Item], difference: ListDifference<Item.ID>), Never> & Sendable
    where Element == [Item], Item.ID: Sendable { ListDifferences(base: self) { $0 } }

    /// The lists of the snapshots with the edits between them, as those of lists. Snapshots without a value are left out.
    public func differences<Item: CacheEntity>()
        -> some AsyncSequence<(items: [Item], difference: ListDifference<Item.ID>), Never> & Sendable
    where Element == Snapshot<EntityList<Item>> { ListDifferences(base: self) { $0.value?.items } }
}
