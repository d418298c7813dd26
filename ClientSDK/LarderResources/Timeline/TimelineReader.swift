/// The items that one reader was shown, and the items that are held back.
struct TimelineReader<Item: CacheEntity>: Sendable {
    private var last: LarderResources.Snapshot<Timeline<Item>.List>?
    private var shown: Set<String> = []
    private var held: Set<String> = []
    private var hasShown = false
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

    /// The view of a snapshot, and the pages of its visible items.
    mutating func view(
        of snapshot: LarderResources.Snapshot<Timeline<Item>.List>,
        _ fetching: Set<TimelinePlace>,
        _ errors: [TimelinePlace: LarderError]
    ) -> (Timeline<Item>.Snapshot, [Timeline<Item>.List.Page]) {
        // A snapshot that is viewed again may be older than the last one.
        if last.map({ snapshot.revision >= $0.revision }) ?? true {
            last = snapshot
            if let list = snapshot.value { receive(list) }
        }
        let present = last ?? snapshot
        var view = Timeline<Item>.Snapshot(present, fetching, errors)
        view.heldBackCount = held.count
        guard let list = present.value.map(visible) else { return (view, []) }
        view.segments = list.segments
        view.items = view.segments.flatMap { segment in
            guard case .items(let items) = segment else { return [Item]() }
            return items
        }
        return (view, list.pages)
    }

    /// Items before the first shown item are new, unless they were created on this device. If no shown item is left, nothing is held
    /// back.
    private mutating func receive(_ list: Timeline<Item>.List) {
        let ids = list.items.map(\.entityID)
        guard hasShown, !isAtTop,
            let first = ids.firstIndex(where: { shown.contains($0) && !list.localIDs.contains($0) })
        else {
            hasShown = !ids.isEmpty
            shown = Set(ids)
            held = []
            return
        }
        held = Set(ids[..<first].filter { !shown.contains($0) && !list.localIDs.contains($0) })
        shown = Set(ids).subtracting(held)
    }

    private func visible(_ list: Timeline<Item>.List) -> Timeline<Item>.List {
        guard !held.isEmpty else { return list }
        var result = Timeline<Item>.List()
        var counter = Timeline<Item>.List.PageCounter(list.pages)
        var isBehindHeld = false
        for segment in list.segments {
            switch segment {
            // A gap behind held-back items is held back with them.
            case .gap(let gap): if !isBehindHeld { result.append(gap) }
            case .items(let items):
                for item in items {
                    isBehindHeld = held.contains(item.entityID)
                    if !isBehindHeld { result.append(item) }
                    counter.count(isKept: !isBehindHeld)
                }
            }
        }
        result.pages = counter.pages
        return result
    }
}
