import LarderStorage
import LarderTime

extension EntityLookup {
    /// The timeline of the index.
    ///
    /// - Parameter opensAtItems: whether the source answers requests for the page around an item.
    mutating func timeline<E: CacheEntity>(
        _ type: E.Type,
        _ details: [UInt8],
        opensAtItems: Bool
    ) throws -> Timeline<E>.List {
        let runs = RunList(list.query.members, try RunList.Details(details), showing: keys)
        var timeline = Timeline<E>.List()
        timeline.tail = runs.tail
        // Where the page of the next item is requested.
        var place = TimelinePlace.page(nil)
        for (index, run) in runs.runs.enumerated() {
            var page = Timeline<E>.List.Page(
                start: run.start,
                facts: facts(run.start.map { _ in run.facts.times })
            )
            if let gap = run.start?.gap {
                place = .gap(gap)
                page.rows.append(.gap(Timeline<E>.Gap(place)))
            } else if let cursor = run.start?.cursor {
                place = .page(cursor)
            }
            for item in run.items where item.key.type == E.entityType {
                var remark = EntityRemark(item.key)
                let entity = look(type, &remark)
                // The freshness of other pages is their own.
                take(remark, isCounted: index == 0)
                if remark.staleSince != nil { page.facts.reason = .invalidated }
                if remark.isMissing { page.facts.isPartial = true }
                if let entity {
                    page.rows.append(.item(entity))
                    if remark.isLocal || item.isOwn { timeline.localIDs.insert(entity.entityID) }
                } else if remark.isMissing {
                    // The items before and after it are no longer consecutive. No cursor leads to what is behind a gap.
                    let isBehindGap = if case .gap = place { true } else { false }
                    let hole = opensAtItems && isBehindGap ? .around(item.key.id) : place
                    page.rows.append(.gap(Timeline<E>.Gap(hole, isHole: true)))
                }
            }
            timeline.pages.append(page)
        }
        pages = timeline.pages.dropFirst().map(\.facts)
        return timeline
    }

    /// The facts about a page, before its items are looked at.
    ///
    /// - Parameter times: nil for the newest page, whose times are those of the list.
    private func facts(_ times: Freshness.Times?) -> FreshnessFacts {
        // A page may have been asked for before the list was invalidated, and arrived after its newest page was refreshed.
        let isOutdated = max(invalid, list.query.invalid) > times?.asked ?? list.query.asked
        return FreshnessFacts(
            times: times ?? list.times,
            reason: isOutdated || list.query.isInvalidated ? .invalidated : nil
        )
    }
}
