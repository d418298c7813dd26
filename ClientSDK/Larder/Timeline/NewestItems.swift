import LarderTime

/// What was told of and belongs in front of a timeline, the oldest first.
struct NewestItems: Sendable {
    struct Item: Sendable {
        var key: EntityKey
        var isOwn: Bool
    }

    var timeline: QueryKey
    var items: [Item]

    /// So many items of others' may stand in front that no page has confirmed. Beyond, the timeline is stale instead: its reader asks
    /// for a page rather than keeping thousands that were told of while nobody looked.
    static let unconfirmedMaximum = 100
}

extension Update {
    /// Stores an entity, and puts it in front of a timeline unless it is there: for events that tell of something new, and for the
    /// acknowledgement of something that was made here.
    ///
    /// Until a page has confirmed its place, it does not count where a refresh looks for overlap: what was told of while others
    /// were missed would hide the gap. Where many were told of, the timeline is declared stale instead of growing by all of them.
    ///
    /// - Parameters:
    ///   - timeline: the timeline's key. Where it is not stored it begins with this item.
    ///   - isOwn: whether it was made here: readers are then shown it at once.
    public mutating func insertNewest<E: Entity>(
        _ item: E,
        in timeline: QueryKey,
        completeness: Completeness = .complete,
        isOwn: Bool = false
    ) {
        put(item, completeness: completeness)
        insertNewest(item.entityKey, in: timeline, isOwn: isOwn)
    }

    /// Puts an entity that is stored in front of a timeline. Many of them become one step: a timeline is read and written as a
    /// whole.
    mutating func insertNewest(_ key: EntityKey, in timeline: QueryKey, isOwn: Bool = false) {
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
        newest.items.append(.init(key: key, isOwn: isOwn))
        steps.append(.insertNewest(newest))
    }
}

extension Commit {
    mutating func insertNewest(_ newest: NewestItems, _ disk: DiskPart) throws {
        let merge = QueryMerge(confirms: false, keys: newest.items.map(\.key)) { query, _, context in
            var isFull = false
            var beginsLoose = false
            try query.editLayout { layout in
                // What is known to be deleted is not put anywhere.
                for item in newest.items where context.stored.contains(item.key) {
                    guard item.isOwn || layout.loose.count < NewestItems.unconfirmedMaximum else {
                        isFull = true
                        continue
                    }
                    layout.insertNewest(item.key, at: context.startedAt.nanosecondsSinceEpoch, isOwn: item.isOwn)
                }
                beginsLoose = layout.items.first.map { layout.loose[$0] != nil } ?? false
            }
            if isFull { query.isInvalidated = true }
            if beginsLoose || isFull { query.entityTag = nil }
        }
        try self.merge(newest.timeline, merge, disk)
    }
}
