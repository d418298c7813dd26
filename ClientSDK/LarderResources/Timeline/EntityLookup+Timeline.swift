import LarderStorage
import LarderTime

extension EntityLookup {
    /// The timeline of the index.
    mutating func timeline<E: CacheEntity>(_ type: E.Type, _ details: [UInt8]) throws -> Timeline<E>.List {
        let runs = RunList(list?.query.members ?? ListMembers(keys), try RunList.Details(details), showing: keys)
        var timeline = Timeline<E>.List()
        timeline.tail = runs.tail
        var segment: [E] = []
        func append(_ gap: TimelinePlace) {
            if !segment.isEmpty { timeline.segments.append(.items(segment)) }
            segment.removeAll()
            timeline.append(Timeline<E>.Gap(gap))
        }
        // The cursor of the page that the next item belongs to.
        var cursor: String?
        for (index, run) in runs.runs.enumerated() {
            var page = Timeline<E>.List.Page(
                start: run.start,
                state: state(run.start.map { _ in run.facts.times }),
                isCursorGone: run.facts.isCursorGone
            )
            if let number = run.start?.gap { append(.gap(number)) }
            if let start = run.start, !run.facts.isCursorGone { cursor = start.cursor }
            for item in run.items {
                // The freshness of other pages is their own.
                switch look(E.self, item.key, isCounted: index == 0, &page.state) {
                case .stored(let entity, let isLocal):
                    page.count += 1
                    segment.append(entity)
                    if isLocal || item.isOwn { timeline.localIDs.insert(entity.entityID) }
                case .hidden: break
                // The items before and after it are no longer consecutive.
                case .evicted: append(.page(cursor))
                }
            }
            timeline.pages.append(page)
        }
        if !segment.isEmpty { timeline.segments.append(.items(segment)) }
        pages = timeline.pages.dropFirst().map(\.state)
        return timeline
    }

    /// The state of a page, before its items are looked at.
    ///
    /// - Parameter times: nil for the newest page, whose times are those of the list.
    private func state(_ times: PageTimes?) -> PageState {
        var known = list?.times ?? Freshness.Times(.never, epoch: 0)
        if let times { known = Freshness.Times(times, isUncertain: known.isUncertain, epoch: known.epoch) }
        let isOutdated = invalid > times?.asked ?? list?.query.asked ?? .never
        return PageState(times: known, isInvalidated: isOutdated || list?.query.isInvalidated ?? false)
    }

    /// Looks an item up, and takes what it says about its page.
    private mutating func look<E: CacheEntity>(
        _ type: E.Type,
        _ key: EntityKey,
        isCounted: Bool,
        _ page: inout PageState
    ) -> TimelineItem<E> {
        guard key.type == E.entityType else { return .hidden }
        var remark = EntityRemark(key)
        let stored = find(key, { try E.codec.decode($0) })
        let (value, pending) = overlays.visible(stored?.value, key)
        remark.pending = pending
        remark.note(stored)
        let entity = value as? E
        remark.isMissing = entity == nil && stored == nil
        take(remark, isCounted: isCounted)
        page.isInvalidated = page.isInvalidated || remark.staleSince != nil
        page.isPartial = page.isPartial || remark.isMissing
        guard let entity else { return stored == nil ? .evicted : .hidden }
        return .stored(entity, isLocal: stored == nil)
    }
}

/// The state of an item that the index of a timeline names.
private enum TimelineItem<Item: CacheEntity> {
    /// `isLocal`: the server does not know the item yet.
    case stored(Item, isLocal: Bool)
    /// A pending change has removed it, or it is of another type.
    case hidden
    /// It is no longer stored.
    case evicted
}
