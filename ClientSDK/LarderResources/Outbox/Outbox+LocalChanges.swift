public import LarderStorage

extension Outbox {
    /// The local changes of an operation: shown over the server's values until the server has applied the operation.
    ///
    /// Changes are applied to the current server value and must be idempotent: set "liked", and do not add one to a count.
    public struct LocalChanges: Sendable {
        var entities: [(key: EntityKey, apply: @Sendable ((any Sendable)?) -> (any Sendable)?)] = []
        var queries: [(key: QueryKey, apply: @Sendable (inout [EntityKey]) -> Void)] = []
        /// What becomes of the stored values if the server has accepted the changes and has returned no value: they keep the changes, and are
        /// stale.
        var accepted: [CacheUpdate.Step] = []
        init() {}

        /// Changes an entity if it is stored.
        public mutating func modify<E: CacheEntity>(
            _ type: E.Type,
            _ id: E.ID,
            _ change: @escaping @Sendable (inout E) -> Void
        ) {
            entities.append(
                (
                    E.key(id),
                    { value in
                        guard var entity = value as? E else { return value }
                        change(&entity)
                        return entity
                    }
                )
            )
            accepted += [.modify(E.key(id), StoredEntityModifier(E.self, change)), .invalidate(E.key(id))]
        }

        /// Shows an entity that the server does not have.
        public mutating func create<E: CacheEntity>(_ entity: E) {
            entities.append((entity.entityKey, { value in value ?? entity }))
            accepted.append(.invalidate(entity.entityKey))
        }

        /// Hides an entity.
        public mutating func remove<E: CacheEntity>(_ type: E.Type, _ id: E.ID) {
            entities.append((E.key(id), { _ in nil }))
            accepted.append(.remove(E.key(id), version: nil))
        }

        /// Changes the keys of a list and their order.
        public mutating func edit(_ list: QueryKey, _ change: @escaping @Sendable (inout [EntityKey]) -> Void) {
            queries.append((list, change))
            accepted.append(.invalidateQuery(list))
        }

        /// Invalidates the stored values that the changes apply to.
        var invalidations: [CacheUpdate.Step] {
            entities.map { CacheUpdate.Step.invalidate($0.key) }
                + queries.map { CacheUpdate.Step.invalidateQuery($0.key) }
        }
    }
}
