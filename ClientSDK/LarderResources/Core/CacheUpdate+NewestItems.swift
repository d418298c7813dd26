public import LarderStorage
import LarderTime

extension CacheUpdate {
    /// Stores an entity and inserts it at the front of a timeline, unless the timeline contains it: for events about
    /// new items, and for the acknowledgement of an item that was created on this device.
    ///
    /// Until a page has confirmed its position, a refresh does not count the item as overlap: otherwise an item from an
    /// event could hide a gap of missed items. If a timeline has 100 unconfirmed items, further ones are not inserted,
    /// and the timeline becomes stale.
    ///
    /// Own items stay in front of all others until the server says where they are: a page, `insertPage`, or an event about the same item,
    /// which is then inserted as the newest one of others. While a new item of others stands behind an own one, the timeline is stale,
    /// because either may be the newer one.
    ///
    /// - Parameters:
    ///   - item: the new item.
    ///   - timeline: the timeline's key. A timeline that is not stored is created with this item.
    ///   - completeness: whether the item has all its fields.
    ///   - isOwn: whether the item was created on this device. Then it is always inserted, and readers see it at once.
    public mutating func insertNewest<E: CacheEntity>(
        _ item: E,
        in timeline: QueryKey,
        completeness: Completeness = .complete,
        isOwn: Bool = false
    ) {
        put(item, completeness: completeness)
        insertNewest(NewestItem(key: item.entityKey, isOwn: isOwn), in: timeline)
    }

    /// Stores an entity and inserts it into a timeline at its position, unless the timeline contains it: for events
    /// that may arrive out of order, or only after a later change of the item.
    ///
    /// An item that is older than all loaded items or lies within a gap is stored and not inserted: the page that
    /// contains it inserts it. An item of a change feed that a later request for the newest page has not brought, or that was taken out since
    /// the feed was asked, is not inserted either: it may be deleted. The timeline becomes stale. Otherwise it is as with `insertNewest`.
    ///
    /// - Parameters: as of `insertNewest`, and:
    ///   - isNew: whether the item was just created and has not changed since. A timeline that is not stored is created with it only if
    ///     `isNew` or `isOwn`.
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
        insertNewest(NewestItem(key: item.entityKey, isOwn: isOwn, isNew: isNew, isNewer: isNewer), in: timeline)
    }

    /// Stores the items of a page of a change feed, and inserts them into a timeline in the server's order: for a server whose order the
    /// client cannot compute from identifiers, and for a feed that leaves items out after a long absence.
    ///
    /// The page follows what the feed has brought before: items that the timeline lacks are inserted beside those of the page that it has,
    /// or in front of it. Own items of the page (`insertNewest` with `isOwn`) move to their places; others stay in front. The server has
    /// stated the places, so these items count as overlap for later pages. An invalidated timeline stays invalidated. What was taken out since
    /// the feed was asked is left out, and items that a later request for the newest page has not brought make the timeline stale.
    ///
    /// ```swift
    /// // The sync reply of a chat server; `isLimited` says that events before these are missing.
    /// func take<Event: CacheEntity>(_ newestFirst: [Event], _ previous: String?, isLimited: Bool, _ room: QueryKey, _ update: inout CacheUpdate) {
    ///     update.insertPage(newestFirst, in: room, olderCursor: previous, hasGap: isLimited)
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - items: the items, newest first, as in pages.
    ///   - timeline: the timeline's key. A timeline that is not stored is created with the page.
    ///   - olderCursor: the cursor of the page of the next older items; nil: not stated.
    ///   - hasGap: whether the feed has left out items between these and those of earlier pages. Unless the timeline has an item of this
    ///     page, a gap is shown, which `Timeline.fill` fills from `olderCursor`; without a cursor the timeline becomes stale instead.
    ///   - completeness: whether the items have all their fields.
    /// - Complexity: O(n) for a timeline of n items.
    public mutating func insertPage<E: CacheEntity>(
        _ items: [E],
        in timeline: QueryKey,
        olderCursor: String? = nil,
        hasGap: Bool = false,
        completeness: Completeness = .complete
    ) {
        for item in items { put(item, completeness: completeness) }
        let keys = items.map(\.entityKey)
        let asked = page?.asked
        let change = ListChange(.part, of: keys) { query, context in
            let removed = context.removed(from: &query, since: asked)
            let page = keys.filter { context.stored.contains($0) && !removed.contains($0) }
            guard !page.isEmpty else { return }
            // A later request for the newest page may have left them out because they are deleted.
            let isUncertain = asked.map { $0 < query.asked && !Set(page).isSubset(of: query.ids) } ?? false
            try query.editRuns { runs in
                runs.takeFeedPage(page, cursor: olderCursor, hasGap: hasGap, at: context.startedAt, context.stamp)
                runs.keep(atMost: NewestItem.fedMaximum)
            }
            if isUncertain || hasGap && olderCursor == nil { query.isInvalidated = true }
            // The validator stands for the items of a page.
            query.entityTag = nil
        }
        steps.append(.changeList(timeline, change))
    }

    /// Adjacent insertions become one step: what the server states of one of them counts for all.
    private mutating func insertNewest(_ item: NewestItem, in timeline: QueryKey) {
        var item = item
        item.asked = page?.asked
        var items: [NewestItem] = []
        search: for index in steps.indices.reversed() {
            switch steps[index] {
            case .insertNewest(timeline, let earlier):
                items = earlier
                steps.remove(at: index)
                break search
            // The order relative to these steps makes no difference.
            case .put, .insertNewest: continue
            case .changeList(let key, _) where key != timeline: continue
            default: break search
            }
        }
        steps.append(.insertNewest(timeline, items + [item]))
    }
}

extension ListChange {
    /// Inserts items into a timeline, oldest first.
    init(inserting newest: [NewestItem]) {
        self.init(.part, of: newest.map(\.key)) { query, context in
            // Items that are known to be deleted are not inserted.
            let tail = try RunList.Details(query.details).tail
            let items = newest.filter { item in
                context.stored.contains(item.key) && !item.isBehind(query.members, tail)
                    && (item.isOwn || !query.members.contains(item.key) || item.isWaiting(in: query.members))
            }
            // All are of one page, or of none.
            guard let first = items.first else { return }
            let removed = context.removed(from: &query, since: first.asked)
            var (isFull, isBehindOwn, isUncertain) = (false, false, false)
            for item in items {
                if !item.isOwn, let asked = item.asked, asked < query.asked || removed.contains(item.key) {
                    isUncertain = true
                    continue
                }
                guard item.isOwn || query.members.hasRoomForUnconfirmed else {
                    isFull = true
                    continue
                }
                if !item.isOwn, item.isNewer == nil, !item.isWaiting(in: query.members) { isBehindOwn = true }
                item.insert(into: &query.members, at: context.startedAt, isEnd: tail == .end)
            }
            if isFull || isUncertain || isBehindOwn && query.members.waitingCount > 0 { query.isInvalidated = true }
            // Usually the first item is unconfirmed, and no further one is looked at.
            let newest = query.members.entries.lazy.prefix { RunList.Start($0.key) == nil }
            if isFull || newest.contains(where: { $0.mark != nil }) { query.entityTag = nil }
        }
    }
}
