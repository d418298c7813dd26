import LarderStorage

extension Timeline {
    /// The stored items of a timeline: runs of items and the gaps between them.
    public struct List: Sendable, Equatable {
        /// A loaded page, with what its freshness depends on.
        struct Page: Sendable, Equatable {
            /// Its beginning; nil for the newest page.
            let start: RunList.Start?
            var facts: FreshnessFacts
            var rows: [Row] = []

            var items: [Item] { rows.compactMap { if case .item(let item) = $0 { item } else { nil } } }
        }

        enum Row: Sendable, Equatable {
            case item(Item)
            case gap(Timeline<Item>.Gap)
        }

        /// The pages in order, the newest first.
        var pages: [Page] = []
        /// Items that were created on this device and that no page has confirmed yet.
        var localIDs: Set<String> = []
        var tail = RunList.Tail.unknown

        private var rows: some Sequence<Row> { pages.lazy.flatMap(\.rows) }

        /// Whether both have the same items and gaps. How current they are does not count.
        public static func == (left: Timeline<Item>.List, right: Timeline<Item>.List) -> Bool {
            left.localIDs == right.localIDs && left.tail == right.tail && left.rows.elementsEqual(right.rows)
        }

        /// The runs and the gaps in order, newest first.
        public var segments: [Timeline<Item>.Segment] {
            var segments: [Timeline<Item>.Segment] = []
            var run: [Item] = []
            for row in rows {
                switch row {
                case .item(let item): run.append(item)
                case .gap(let gap):
                    if !run.isEmpty { segments.append(.items(run)) }
                    run = []
                    if segments.last?.gap == nil { segments.append(.gap(gap)) }
                }
            }
            return run.isEmpty ? segments : segments + [.items(run)]
        }

        /// All items in order, across the gaps.
        public var items: [Item] { pages.flatMap(\.items) }

        /// The gaps in order.
        public var gaps: [Timeline<Item>.Gap] { segments.compactMap(\.gap) }

        /// Whether the oldest item is loaded.
        public var hasReachedEnd: Bool { tail == .end }

        /// The list without some items, and without the gaps that follow them.
        func removing(_ isRemoved: (Item) -> Bool, andGaps removesGaps: Bool) -> Timeline<Item>.List {
            var list = self
            var isBehindRemoved = false
            for index in pages.indices {
                list.pages[index].rows = pages[index].rows.filter { row in
                    guard case .item(let item) = row else { return !(removesGaps && isBehindRemoved) }
                    isBehindRemoved = isRemoved(item)
                    return !isBehindRemoved
                }
            }
            return list
        }
    }

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

    /// A place where items may be missing. `Timeline.fill` fetches them page by page.
    public struct Gap: Sendable, Hashable, Identifiable {
        /// The identity of the gap while it exists.
        public let id: String
        let place: TimelinePlace

        /// - Parameter isHole: whether an item is missing within the run that begins at the place.
        init(_ place: TimelinePlace, isHole: Bool = false) {
            self.place = place
            switch place {
            case .gap(let number), .newer(let number): id = isHole ? "evicted below \(number)" : "\(number)"
            case .page(let cursor): id = "evicted \(cursor ?? "")"
            case .tail: id = "tail"
            case .around(let item): id = "around \(item)"
            }
        }
    }
}

extension Timeline.List {
    /// A list with one fetched page, before it is merged.
    init(_ page: EntityList<Item>) {
        let facts = FreshnessFacts(times: .none)
        pages = [Page(start: nil, facts: facts, rows: page.items.map { .item($0) })]
        tail = page.nextCursor.map { .cursor($0) } ?? .end
    }

    /// Stores the items as entities, and an index into which answers are merged.
    static func normalizer(of resource: PagedResource<Item>) -> Normalizer<Timeline<Item>.List> {
        var normalizer = Normalizer<Timeline<Item>.List>(
            split: { list, collector in
                for item in list.items { collector.add(item, completeness: resource.completeness) }
                return RunList.Details(tail: list.tail).encoded
            },
            join: { details, lookup in
                let list = try lookup.timeline(Item.self, details, opensAtItems: resource.isNewer != nil)
                guard let temporaryID = resource.temporaryID, !list.localIDs.isEmpty else { return list }
                // Local items whose server item is in the list.
                let named = Set(list.items.compactMap { $0.replacedID(temporaryID) }).intersection(list.localIDs)
                var shown = list.removing({ named.contains($0.entityID) }, andGaps: false)
                shown.localIDs.subtract(named)
                return shown
            }
        )
        normalizer.merge = { answer, stated in
            ListChange(.newestPage(stated), of: answer.ids) { query, context in
                let before = query
                let removed = context.removed(from: &query)
                let known = answer.ids.filter { context.stored.contains($0) && !removed.contains($0) }
                let page = IncomingPage(
                    keys: known,
                    cursor: try RunList.Details(answer.details).tail.cursor,
                    limit: max(1, resource.pageSize),
                    times: Freshness.Times(stated, at: context.startedAt, asked: context.stamp),
                    validator: known.count == answer.ids.count ? answer.entityTag : nil,
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
                    query.entityTag = isConfirmed && list.items.starts(with: page.keys) ? page.validator : nil
                    // A page that comes back identical changes nothing.
                    if query != before { query.answered = context.committed }
                }
            }
        }
        return normalizer
    }
}

extension PagedResource {
    var keptMaximum: Int { max(itemsMaximum, 2 * max(1, pageSize)) }
}
