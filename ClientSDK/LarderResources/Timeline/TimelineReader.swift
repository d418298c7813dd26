/// The items that one reader was shown, and the items that are held back.
struct TimelineReader<Item: CacheEntity>: Sendable {
    private var last: LarderResources.Snapshot<Timeline<Item>.List>?
    private var shown: Set<String> = []
    private var held: Set<String> = []
    /// Whether new items are inserted at once.
    var isAtTop: Bool

    init(isAtTop: Bool) { self.isAtTop = isAtTop }

    /// Shows all items, and returns the number of held-back ones.
    mutating func showHeldBack() -> Int {
        defer {
            shown.formUnion(held)
            held = []
        }
        return held.count
    }

    /// The snapshot, or a later one that was viewed before, the number of its items that are held back, and the list without them.
    mutating func view(
        of snapshot: LarderResources.Snapshot<Timeline<Item>.List>
    ) -> (LarderResources.Snapshot<Timeline<Item>.List>, heldBackCount: Int, Timeline<Item>.List?) {
        if last.map({ snapshot.revision >= $0.revision }) ?? true {
            last = snapshot
            if let list = snapshot.value { receive(list) }
        }
        let present = last ?? snapshot
        guard let list = present.value, !held.isEmpty else { return (present, held.count, present.value) }
        // A gap behind held-back items is held back with them.
        return (present, held.count, list.removing({ held.contains($0.entityID) }, andGaps: true))
    }

    /// Items before the first shown item are new, unless they were created on this device. If no shown item is left, nothing is held
    /// back.
    private mutating func receive(_ list: Timeline<Item>.List) {
        let ids = list.items.map(\.entityID)
        guard !isAtTop,
            let first = ids.firstIndex(where: { shown.contains($0) && !list.localIDs.contains($0) })
        else {
            shown = Set(ids)
            held = []
            return
        }
        held = Set(ids[..<first].filter { !shown.contains($0) && !list.localIDs.contains($0) })
        shown = Set(ids).subtracting(held)
    }
}
