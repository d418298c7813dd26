import LarderStorage
import LarderTime

extension EntityLookup {
    /// The timeline of the index.
    mutating func timeline<E: CacheEntity>(_ type: E.Type, _ details: [UInt8]) throws -> Timeline<E>.List {
        let runs = RunList(list.query.members, try RunList.Details(details), showing: keys)
        var timeline = Timeline<E>.List()
        timeline.tail = runs.tail
        // Where the page of the next item is requested.
        var place = TimelinePlace.page(nil)
        for (index, run) in runs.runs.enumerated() {
            var page = Timeline<E>.List.Page(
                start: run.start,
                isCursorGone: run.facts.isCursorGone,
                facts: facts(run.start.map { _ in run.facts.times })
            )
            switch run.start {
            case .gap(let number, _)?:
                place = .gap(number)
                page.rows.append(.gap(Timeline<E>.Gap(place)))
            case .joined(let cursor)? where !run.facts.isCursorGone: place = .page(cursor)
            case .joined?, nil: break
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
                    // The items before and after it are no longer consecutive.
                    page.rows.append(.gap(Timeline<E>.Gap(place, isHole: true)))
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
        var known = list.times
        if var times {
            (times.isUncertain, times.epoch) = (known.isUncertain, known.epoch)
            known = times
        }
        // A page may have been asked for before the list was invalidated, and arrived after its newest page was refreshed.
        let isOutdated = max(invalid, list.query.invalid) > times?.asked ?? list.query.asked
        return FreshnessFacts(
            times: known,
            reason: isOutdated || list.query.isInvalidated ? .invalidated : nil
        )
    }
}
