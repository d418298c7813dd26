import LarderStorage

extension Timeline {
    /// The stored items of a timeline: runs of items and the gaps between them.
    public struct List: Sendable, Equatable {
        /// The runs and the gaps in order, newest first.
        public internal(set) var segments: [Timeline<Item>.Segment] = []
        /// Items that were created on this device and that no page has confirmed yet.
        var localIDs: Set<String> = []
        var tail = TimelineLayout.Tail.unknown

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
                // Taken out first: otherwise it would be copied for each item.
                segments.removeLast()
                items.append(item)
                segments.append(.items(items))
            } else {
                segments.append(.items([item]))
            }
        }

        /// Removes local items whose server item is in the list.
        mutating func removeDoubles(_ localName: (Item) -> String?) {
            guard !localIDs.isEmpty else { return }
            let named = Set(items.compactMap(localName)).intersection(localIDs)
            guard !named.isEmpty else { return }
            localIDs.subtract(named)
            let old = segments
            segments = []
            for segment in old {
                switch segment {
                case .gap(let gap): append(gap)
                case .items(let items): for item in items where !named.contains(item.entityID) { append(item) }
                }
            }
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
            }
        }
    }
}

extension Timeline.List {
    /// A page as an answer, before it is merged.
    init(_ page: EntityList<Item>) {
        segments = [.items(page.items)]
        tail = page.nextCursor.map { .cursor($0) } ?? .end
    }

    /// How it is stored: the items by themselves, and an index that answers are merged into.
    static func normalizer(of resource: PagedResource<Item>) -> Normalizer<Timeline<Item>.List> {
        var normalizer = Normalizer<Timeline<Item>.List>(
            split: { list, collector in
                for item in list.items { collector.add(item, completeness: resource.completeness) }
                return try TimelineLayout.Details(tail: list.tail).encoded
            },
            join: { details, lookup in
                var list = try joined(details, &lookup)
                if let localName = resource.localName { list.removeDoubles(localName) }
                return list
            }
        )
        normalizer.merge = { answer, stated in
            QueryMerge(confirms: true, stated: stated, keys: answer.ids) { query, orders, context in
                let page = IncomingPage(
                    keys: answer.ids.filter { context.stored.contains($0) },
                    cursor: try TimelineLayout.Details(answer.details).tail.cursor,
                    validator: answer.entityTag,
                    order: context.order,
                    startedAt: context.startedAt,
                    settlingTime: resource.settlingTime
                )
                let rule = context.isReset ? .reset : resource.onDiscontinuity
                let isLatest = context.order >= orders.head
                try query.editLayout { layout in
                    layout.takeNewest(page, rule, &orders)
                    layout.keep(atMost: resource.keptMaximum)
                }
                // While something is in front that no page has, "not modified" would keep it there for ever.
                if isLatest { query.entityTag = try query.beginsLoose ? nil : answer.entityTag }
            }
        }
        return normalizer
    }

    private static func joined(_ details: [UInt8], _ lookup: inout EntityLookup) throws -> Timeline<Item>.List {
        let layout = TimelineLayout(lookup.keys, try TimelineLayout.Details(details))
        var list = Timeline<Item>.List()
        list.tail = layout.tail
        // Where the page begins that holds what comes next.
        var page: String?
        var isNewestPage = true
        for element in layout.elements {
            switch element {
            case .boundary(let cursor):
                page = cursor
                isNewestPage = false
            case .gap(let number, let cursor):
                list.append(Timeline<Item>.Gap(.gap(number)))
                page = cursor
                isNewestPage = false
            case .item(let key):
                switch lookup.item(Item.self, key, isRequired: isNewestPage) {
                case .stored(let item, let isLocal):
                    list.append(item)
                    if isLocal || layout.loose[key]?.isOwn ?? false { list.localIDs.insert(item.entityID) }
                case .hidden: break
                // It has left the store for want of room: what is around it is no run any more.
                case .evicted: list.append(Timeline<Item>.Gap(.page(page)))
                }
            }
        }
        return list
    }
}

extension PagedResource {
    var keptMaximum: Int { max(itemsMaximum, 2 * max(1, pageSize)) }
}

extension TimelineLayout.Tail {
    var cursor: String? {
        guard case .cursor(let cursor) = self else { return nil }
        return cursor
    }
}

extension DiskQuery {
    /// Whether the first item was inserted here, and no page has confirmed it.
    var beginsLoose: Bool {
        get throws {
            let layout = TimelineLayout(ids, try TimelineLayout.Details(details))
            return layout.items.first.map { layout.loose[$0] != nil } ?? false
        }
    }

    /// Changes the layout that the index holds.
    mutating func editLayout(_ change: (inout TimelineLayout) -> Void) throws {
        var layout = TimelineLayout(ids, try TimelineLayout.Details(details))
        change(&layout)
        ids = layout.keys
        nextCursor = layout.tail.cursor
        isComplete = layout.tail == .end && !layout.elements.contains(where: \.isGap)
        details = try layout.details.encoded
    }
}

extension EntityLookup {
    /// What became of an item that an index names.
    enum Found<E: CacheEntity> {
        /// `isLocal`: the server does not know it yet.
        case stored(E, isLocal: Bool)
        /// A pending change has removed it, or it is of another type.
        case hidden
        case evicted
    }

    /// An item that an index names.
    ///
    /// - Parameter isRequired: whether the list is not fresh where the item is missing or stale.
    mutating func item<E: CacheEntity>(_ type: E.Type, _ key: EntityKey, isRequired: Bool) -> Found<E> {
        guard key.type == E.entityType else { return .hidden }
        let stored = find(key, { try E.codec.decode($0) })
        let (value, pending) = overlays.visible(stored?.value, key)
        self.pending += pending
        if isRequired, let stored, stored.isInvalidated { stale.append((key, stored.times.fetchedAt)) }
        guard let entity = value as? E else {
            guard stored == nil else { return .hidden }
            if isRequired { missing += 1 }
            return .evicted
        }
        return .stored(entity, isLocal: stored == nil)
    }
}
