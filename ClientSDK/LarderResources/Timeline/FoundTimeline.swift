import LarderStorage

/// A timeline that was assembled from its index, kept for the next assembly.
struct FoundTimeline<Item: CacheEntity>: Sendable {
    /// The position of an item in the segments of a list.
    struct Position: Sendable {
        let segment: Int
        let offset: Int
    }

    /// The items of the index.
    let items: [RunList.Item]
    var list = Timeline<Item>.List()
    /// The positions of `items`, in the same order; nil for one that is not an item of the list.
    var positions: [Position?] = []
    /// The indices in `items` of the pages of `list`, in the same order. The list is not fresh if an item of the newest page is missing or
    /// stale.
    let ranges: [Range<Int>]

    init(_ runs: RunList) {
        items = runs.runs.flatMap(\.items)
        var end = 0
        ranges = runs.runs.map { run in
            end += run.items.count
            return end - run.items.count..<end
        }
        list.tail = runs.tail
    }

    /// Takes what the remarks say about the items of each page.
    ///
    /// - Parameter remarks: in the order of their places.
    mutating func apply(_ remarks: [FoundEntities.Remark]) {
        var rest = remarks[...]
        for index in list.pages.indices {
            let page = rest.prefix { $0.place < ranges[index].upperBound }
            rest = rest.dropFirst(page.count)
            list.pages[index].state.isInvalidated =
                list.pages[index].isOutdated || page.contains { $0.staleSince != nil }
            list.pages[index].state.isPartial = page.contains(where: \.isMissing)
        }
    }
}

extension EntityLookup {
    /// The timeline of the index. If there is an earlier lookup for the same index, only the changed items are looked up again.
    mutating func timeline<E: CacheEntity>(_ type: E.Type, _ details: [UInt8]) throws -> Timeline<E>.List {
        var remarks: [FoundEntities.Remark] = []
        let found: FoundTimeline<E>
        if let known, let values = known.values as? FoundTimeline<E>, let again = update(values, known, &remarks) {
            found = again
        } else {
            remarks = []
            let members = list?.query.members ?? ListMembers(keys)
            found = build(RunList(members, try RunList.Details(details), showing: keys), &remarks)
        }
        pages = found.list.pages.dropFirst().map(\.state)
        note(FoundEntities(values: found, remarks: remarks))
        return found.list
    }

    /// Looks the changed items up; nil if one of them has appeared or disappeared.
    private func update<E: CacheEntity>(
        _ earlier: FoundTimeline<E>,
        _ known: FoundEntities,
        _ remarks: inout [FoundEntities.Remark]
    ) -> FoundTimeline<E>? {
        var timeline = earlier
        remarks = known.remarks
        for key in changed where key.type == E.entityType {
            guard let place = timeline.items.firstIndex(where: { $0.key == key }) else { continue }
            remarks.removeAll { $0.place == place }
            let item = look(E.self, key, place, timeline.ranges, &remarks)
            guard let position = timeline.positions[place], case .stored(let entity, let isLocal) = item,
                (isLocal || timeline.items[place].isOwn) == timeline.list.localIDs.contains(key.id)
            else { return nil }
            timeline.list.replace(position.segment, position.offset, entity)
        }
        remarks.sort { $0.place < $1.place }
        timeline.apply(remarks)
        return timeline
    }

    private func build<E: CacheEntity>(
        _ runs: RunList,
        _ remarks: inout [FoundEntities.Remark]
    ) -> FoundTimeline<E> {
        var timeline = FoundTimeline<E>(runs)
        timeline.positions.reserveCapacity(timeline.items.count)
        var segment: [E] = []
        segment.reserveCapacity(timeline.items.count)
        func append(_ gap: TimelinePlace) {
            if !segment.isEmpty { timeline.list.segments.append(.items(segment)) }
            segment.removeAll()
            timeline.list.append(Timeline<E>.Gap(gap))
        }
        // The cursor of the page that the next item belongs to.
        var cursor: String?
        for run in runs.runs {
            var page = Timeline<E>.List.Page(
                start: run.start,
                state: state(run.start.map { _ in run.facts.times }),
                isCursorGone: run.facts.isCursorGone
            )
            if let number = run.start?.gap { append(.gap(number)) }
            if let start = run.start, !run.facts.isCursorGone { cursor = start.cursor }
            for item in run.items {
                var position: FoundTimeline<E>.Position?
                switch look(E.self, item.key, timeline.positions.count, timeline.ranges, &remarks) {
                case .stored(let entity, let isLocal):
                    page.count += 1
                    position = .init(segment: timeline.list.segments.count, offset: segment.count)
                    segment.append(entity)
                    if isLocal || item.isOwn { timeline.list.localIDs.insert(entity.entityID) }
                case .hidden: break
                // The items before and after it are no longer consecutive.
                case .evicted: append(.page(cursor))
                }
                timeline.positions.append(position)
            }
            timeline.list.pages.append(page)
        }
        if !segment.isEmpty { timeline.list.segments.append(.items(segment)) }
        timeline.apply(remarks)
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

    /// Looks an item up, and adds a remark if there is anything to count.
    private func look<E: CacheEntity>(
        _ type: E.Type,
        _ key: EntityKey,
        _ place: Int,
        _ ranges: [Range<Int>],
        _ remarks: inout [FoundEntities.Remark]
    ) -> TimelineItem<E> {
        guard key.type == E.entityType else { return .hidden }
        var remark = FoundEntities.Remark(place: place, key: key)
        let stored = find(key, { try E.codec.decode($0) })
        let (value, pending) = overlays.visible(stored?.value, key)
        remark.pending = pending
        remark.isCounted = place < (ranges.first?.upperBound ?? 0)
        remark.note(stored)
        let entity = value as? E
        remark.isMissing = entity == nil && stored == nil
        if remark.isNotable { remarks.append(remark) }
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
