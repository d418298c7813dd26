import LarderStorage

extension Timeline {
    /// The stored items of a timeline: runs of items and the gaps between them.
    public struct List: Sendable, Equatable {
        /// The runs and the gaps in order, newest first.
        public internal(set) var segments: [Timeline<Item>.Segment] = []
        /// Items that were created on this device and that no page has confirmed yet.
        var localIDs: Set<String> = []
        var tail = RunList.Tail.unknown
        /// The pages in order, the newest first. Together they have all items.
        var pages: [Page] = []

        /// Whether both have the same items and gaps. How current they are does not count.
        public static func == (left: Timeline<Item>.List, right: Timeline<Item>.List) -> Bool {
            left.segments == right.segments && left.localIDs == right.localIDs && left.tail == right.tail
        }

        /// All items in order, across the gaps.
        public var items: [Item] {
            segments.flatMap { segment in
                guard case .items(let items) = segment else { return [Item]() }
                return items
            }
        }

        /// The gaps in order.
        public var gaps: [Timeline<Item>.Gap] { segments.compactMap(\.gap) }

        /// Whether the oldest item is loaded.
        public var hasReachedEnd: Bool { tail == .end }

        mutating func append(_ item: Item) {
            if case .items(var items) = segments.last {
                // Removed first, so that the array is not copied for each item.
                segments.removeLast()
                items.append(item)
                segments.append(.items(items))
            } else {
                segments.append(.items([item]))
            }
        }

        /// Removes local items whose server item is in the list.
        mutating func removeDoubles(_ temporaryID: (Item) -> String?) {
            guard !localIDs.isEmpty else { return }
            let named = Set(items.compactMap(temporaryID)).intersection(localIDs)
            guard !named.isEmpty else { return }
            localIDs.subtract(named)
            let old = segments
            segments = []
            var counter = PageCounter(pages)
            for segment in old {
                switch segment {
                case .gap(let gap): append(gap)
                case .items(let items):
                    for item in items {
                        let isKept = !named.contains(item.entityID)
                        if isKept { append(item) }
                        counter.count(isKept: isKept)
                    }
                }
            }
            pages = counter.pages
        }

        mutating func append(_ gap: Timeline<Item>.Gap) {
            if case .gap = segments.last { return }
            segments.append(.gap(gap))
        }
    }
}

extension Timeline {
    /// A part of a timeline.
    public enum Segment: Sendable, Equatable {
        /// Consecutive items.
        case items([Item])
        /// Items are or may be missing here.
        case gap(Timeline<Item>.Gap)

        var gap: Timeline<Item>.Gap? {
            guard case .gap(let gap) = self else { return nil }
            return gap
        }
    }
}

extension Timeline {
    /// A place where items may be missing. `Timeline.fill` fetches them page by page.
    public struct Gap: Sendable, Hashable, Identifiable {
        /// The identity of the gap while it exists.
        public let id: String
        let place: TimelinePlace

        init(_ place: TimelinePlace) {
            self.place = place
            switch place {
            case .gap(let number): id = "\(number)"
            case .page(let cursor): id = "evicted \(cursor ?? "")"
            case .tail: id = "tail"
            case .renewal(let cursor): id = "renewal \(cursor)"
            case .newer(let number): id = "\(number)"
            case .around(let item): id = "around \(item)"
            }
        }
    }
}

extension Timeline.List {
    /// A list with one fetched page, before it is merged.
    init(_ page: EntityList<Item>) {
        segments = [.items(page.items)]
        tail = page.nextCursor.map { .cursor($0) } ?? .end
    }

    /// Stores the items as entities, and an index into which answers are merged.
    static func normalizer(of resource: PagedResource<Item>) -> Normalizer<Timeline<Item>.List> {
        var normalizer = Normalizer<Timeline<Item>.List>(
            split: { list, collector in
                for item in list.items { collector.add(item, completeness: resource.completeness) }
                return try RunList.Details(tail: list.tail).encoded
            },
            join: { details, lookup in
                var list = try lookup.timeline(Item.self, details)
                if let temporaryID = resource.temporaryID { list.removeDoubles(temporaryID) }
                return list
            }
        )
        normalizer.merge = { answer, stated in
            QueryMerge(confirms: true, stated: stated, keys: answer.ids) { query, context in
                let page = IncomingPage(
                    keys: answer.ids.filter { context.stored.contains($0) },
                    cursor: try RunList.Details(answer.details).tail.cursor,
                    limit: max(1, resource.pageSize),
                    times: PageTimes(stated, at: context.startedAt, asked: context.stamp),
                    validator: answer.entityTag,
                    isOnlyConfirmed: context.isInvalid,
                    receivedAt: context.receivedAt
                )
                var isLatest = false
                let list = try query.editRuns { list in
                    isLatest = !page.isBefore(list.runs[0])
                    list.takeNewest(page, dropsBehindGap: resource.dropsBehindGap)
                    list.keep(atMost: resource.keptMaximum)
                }
                // While the list does not begin with the page alone, the validator is dropped: a 304 would keep other items there for ever.
                if isLatest {
                    let isConfirmed = list.runs[0].items.allSatisfy { $0.insertion == nil }
                    query.entityTag = isConfirmed && list.items.starts(with: page.keys) ? answer.entityTag : nil
                }
            }
        }
        return normalizer
    }
}

extension PagedResource {
    var keptMaximum: Int { max(itemsMaximum, 2 * max(1, pageSize)) }
}
