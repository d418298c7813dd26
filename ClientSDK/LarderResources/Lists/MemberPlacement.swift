/// Places changed items of a declared list by its condition and order. A value without I/O.
///
/// Items that have not changed since the source returned the list keep the places that the source gave them, whatever
/// condition and order say: the source may know more than the item shows.
struct MemberPlacement<Item> {
    let isMember: (Item) -> Bool
    let areInIncreasingOrder: (Item, Item) -> Bool

    /// The items of the list.
    ///
    /// - Parameters:
    ///   - listed: the items of the stored index, with whether they have changed since.
    ///   - others: changed items that the index does not contain.
    ///   - isWhole: whether the index has the whole list, and not only its beginning. Otherwise an item that has moved behind the
    ///     last item that stays, and another one behind the last unchanged item, is left out: its neighbours are unknown.
    /// - Complexity: O(n) for each changed item.
    func items(
        _ listed: [(item: Item, hasChanged: Bool)],
        others: [Item],
        isWhole: Bool
    ) -> [Item] {
        var result: [Item] = []
        result.reserveCapacity(listed.count + others.count)
        var moved: [Item] = []
        for (index, entry) in listed.enumerated() {
            guard entry.hasChanged else {
                result.append(entry.item)
                continue
            }
            guard isMember(entry.item) else { continue }
            let next = listed[(index + 1)...].first { !$0.hasChanged }?.item
            let isBehindPrevious = result.last.map { !areInIncreasingOrder(entry.item, $0) } ?? true
            let isBeforeNext = next.map { !areInIncreasingOrder($0, entry.item) } ?? true
            if isBehindPrevious && isBeforeNext { result.append(entry.item) } else { moved.append(entry.item) }
        }
        func insert(_ items: [Item], before last: Item?) {
            for item in items {
                if !isWhole { guard let last, areInIncreasingOrder(item, last) else { continue } }
                let index = result.firstIndex { areInIncreasingOrder(item, $0) } ?? result.endIndex
                result.insert(item, at: index)
            }
        }
        insert(moved, before: result.last)
        insert(others.filter(isMember), before: listed.last { !$0.hasChanged }?.item)
        return result
    }
}
