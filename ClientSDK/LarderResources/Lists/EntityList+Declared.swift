import LarderStorage

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
            var confirmed = Set(list.items.compactMap(temporaryID))
            let others = changes.recorded.union(changes.pending).filter { !listed.contains($0) }
                .sorted { $0.id < $1.id }
                .compactMap { key in
                    lookup.candidate(Item.self, key) { item in
                        temporaryID(item).map { _ = confirmed.insert($0) }
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
        return declared
    }
}
