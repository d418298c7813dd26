package import LarderStorage

/// A list of entities, or a page of one, as the source returned it.
public struct EntityList<Item: CacheEntity>: Sendable, Equatable {
    /// The items in order.
    public var items: [Item]
    /// The cursor of the next page; nil after the last one and for a list without pages. A page without items may have one.
    public var nextCursor: String?
    /// The cursor of the page of newer items; nil for the newest page, if the source has stated none, and for a stored list.
    public var previousCursor: String?

    public init(_ items: [Item], nextCursor: String? = nil, previousCursor: String? = nil) {
        self.items = items
        self.nextCursor = nextCursor
        self.previousCursor = previousCursor
    }

    /// Stores the items as entities of the given completeness, and an index with the cursor.
    package static func normalizer(showing completeness: Completeness) -> Normalizer<EntityList> {
        var normalizer = Normalizer<EntityList>(
            split: { list, collector in
                for item in list.items { collector.add(item, completeness: completeness) }
                return RunList.Details(tail: list.nextCursor.map { .cursor($0) } ?? .end).encoded
            },
            join: { details, lookup in
                EntityList(lookup.entities(Item.self), nextCursor: try RunList.Details(details).tail.cursor)
            }
        )
        normalizer.shown = completeness
        return normalizer
    }
}

extension EntityList {
    /// The normalizer of a list with a declared condition and order.
    static func normalizer(
        showing completeness: Completeness,
        where isMember: @escaping @Sendable (Item) -> Bool,
        sortedBy areInIncreasingOrder: @escaping @Sendable (Item, Item) -> Bool,
        temporaryID: @escaping @Sendable (Item) -> String?
    ) -> Normalizer<EntityList> {
        let plain = normalizer(showing: completeness)
        var declared = Normalizer<EntityList>(split: plain.split) { rest, lookup in
            var list = try plain.join(rest, &lookup)
            guard let changes = lookup.changes else { return list }
            let listed = Set(lookup.keys)
            // The temporary identifiers of confirmed entities, whether they belong to this list or not.
            var confirmed = Set(list.items.compactMap { $0.replacedID(temporaryID) })
            let others = changes.recorded.union(changes.pending).filter { !listed.contains($0) }
                .sorted { $0.id < $1.id }
                .compactMap { key in
                    lookup.candidate(Item.self, key) { item in
                        item.replacedID(temporaryID).map { _ = confirmed.insert($0) }
                        return isMember(item)
                    }
                }
            let placement = MemberPlacement(isMember: isMember, areInIncreasingOrder: areInIncreasingOrder)
            list.items = placement.items(
                list.items.map { ($0, changes.contains($0.entityKey)) },
                others: others.filter { !confirmed.contains($0.entityID) },
                isWhole: list.nextCursor == nil
            )
            return list
        }
        declared.memberType = Item.entityType
        declared.shown = completeness
        return declared
    }
}

extension CacheEntity {
    /// The identifier that it had before the source confirmed it. An item that was created on this device may state its own: it replaces none.
    func replacedID(_ temporaryID: (Self) -> String?) -> String? {
        temporaryID(self).flatMap { $0 == entityID ? nil : $0 }
    }
}
