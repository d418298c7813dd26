public import LarderStorage
import LarderTime

extension CacheUpdate {
    /// Stores an entity, and puts it in front of a timeline unless it is there: for events that tell of something new, and for the
    /// acknowledgement of something that was made here.
    ///
    /// Until a page has confirmed its place, it does not count where a refresh looks for overlap: what was told of while others
    /// were missed would hide the gap. Where many were told of, the timeline is declared stale instead of growing by all of them.
    ///
    /// - Parameters:
    ///   - timeline: the timeline's key. Where it is not stored it begins with this item.
    ///   - isOwn: whether it was made here: readers are then shown it at once.
    public mutating func insertNewest<E: CacheEntity>(
        _ item: E,
        in timeline: QueryKey,
        completeness: Completeness = .complete,
        isOwn: Bool = false
    ) {
        put(item, completeness: completeness)
        insertNewest(item.entityKey, in: timeline, isOwn: isOwn)
    }

    /// Stores an entity, and names it in a timeline where it belongs, unless it is there: for events that may tell of something new
    /// only after it has been changed, or out of order.
    ///
    /// What is older than all that is loaded, and what lies within a gap, is stored, and named by the page that it will come with.
    /// For the rest it is as with `insertNewest`.
    ///
    /// - Parameters:
    ///   - timeline: the timeline's key. Where it is not stored it begins with this item if that `isNew`.
    ///   - isNew: whether it was just made, and not changed since.
    ///   - isOwn: whether it was made here: readers are then shown it at once.
    ///   - isNewer: whether the item with the first identifier comes before the one with the second. Identifiers are given by their
    ///     descriptions.
    public mutating func insert<E: CacheEntity>(
        _ item: E,
        in timeline: QueryKey,
        isNew: Bool,
        completeness: Completeness = .complete,
        isOwn: Bool = false,
        isNewer: @escaping @Sendable (String, String) -> Bool
    ) {
        put(item, completeness: completeness)
        insertNewest(.init(key: item.entityKey, isOwn: isOwn, isNew: isNew, isNewer: isNewer), in: timeline)
    }

    /// Puts an entity that is stored in front of a timeline.
    mutating func insertNewest(_ key: EntityKey, in timeline: QueryKey, isOwn: Bool = false) {
        insertNewest(.init(key: key, isOwn: isOwn), in: timeline)
    }

    /// Many of them become one step: a timeline is read and written as a whole.
    private mutating func insertNewest(_ item: NewestItems.Item, in timeline: QueryKey) {
        var newest = NewestItems(timeline: timeline, items: [])
        search: for index in steps.indices.reversed() {
            switch steps[index] {
            case .insertNewest(let earlier) where earlier.timeline == timeline:
                newest = earlier
                steps.remove(at: index)
                break search
            // To be put in later than these makes no difference.
            case .put, .editQuery, .insertNewest: continue
            default: break search
            }
        }
        newest.items.append(item)
        steps.append(.insertNewest(newest))
    }
}

extension Commit {
    mutating func insertNewest(_ newest: NewestItems, _ disk: DiskPart) throws {
        let merge = QueryMerge(confirms: false, keys: newest.items.map(\.key)) { query, _, context in
            let known = Set(query.ids)
            // What is known to be deleted is not put anywhere.
            let items = newest.items.filter { item in
                context.stored.contains(item.key) && !item.isBehind(query) && (item.isOwn || !known.contains(item.key))
            }
            guard !items.isEmpty else { return }
            var isFull = false
            var beginsLoose = false
            try query.editLayout { layout in
                for item in items {
                    guard item.isOwn || layout.loose.count < NewestItems.unconfirmedMaximum else {
                        isFull = true
                        continue
                    }
                    item.insert(into: &layout, at: context.startedAt)
                }
                beginsLoose = layout.items.first.map { layout.loose[$0] != nil } ?? false
            }
            if isFull { query.isInvalidated = true }
            if beginsLoose || isFull { query.entityTag = nil }
        }
        try self.merge(newest.timeline, merge, disk)
    }
}
