public import LarderStorage

extension Outbox {
    /// The local changes of an operation: shown over the server's values until the server has applied the operation.
    ///
    /// Changes are applied to the current server value and must be idempotent: set "liked", and do not add one to a count.
    public struct LocalChanges: Sendable {
        var overlays: [(key: StoredKey, change: Overlay.Change)] = []
        /// What becomes of the stored values if the server has accepted the changes and has returned no value: they keep the changes, and are
        /// stale.
        var accepted: [CacheUpdate.Step] = []

        /// The key under which the operation is sent: for a server that returns it with what it has created, such as the ID of a transaction.
        /// An entity that is shown under it is replaced by the server's (`PagedResource.temporaryID`).
        public let idempotencyKey: String

        package init(idempotencyKey: String) { self.idempotencyKey = idempotencyKey }

        private mutating func add(
            _ key: EntityKey,
            accepted steps: [CacheUpdate.Step],
            _ apply: @escaping @Sendable ((any Sendable)?) -> (any Sendable)?
        ) {
            overlays.append((.entity(key), .entity(apply)))
            accepted += steps
        }

        /// Changes an entity if it is stored.
        public mutating func modify<E: CacheEntity>(
            _ type: E.Type,
            _ id: E.ID,
            _ change: @escaping @Sendable (inout E) -> Void
        ) {
            modify(type, at: E.key(id), change)
        }

        /// Changes the entity under a key of its type.
        package mutating func modify<E: CacheEntity>(
            _ type: E.Type,
            at key: EntityKey,
            _ change: @escaping @Sendable (inout E) -> Void
        ) {
            add(key, accepted: [.modify(key, StoredEntityModifier(E.self, change)), .invalidate(.entity(key))]) {
                value in
                guard var entity = value as? E else { return value }
                change(&entity)
                return entity
            }
        }

        /// Shows an entity that the server does not have.
        public mutating func create<E: CacheEntity>(_ entity: E) {
            add(entity.entityKey, accepted: [.invalidate(.entity(entity.entityKey))]) { value in value ?? entity }
        }

        /// Hides an entity.
        public mutating func remove<E: CacheEntity>(_ type: E.Type, _ id: E.ID) {
            remove(E.key(id))
        }

        /// Hides the entity under a key.
        package mutating func remove(_ key: EntityKey) {
            add(key, accepted: [.remove(key, version: nil)]) { _ in nil }
        }

        /// Changes the entity under a key, whose type is not known. Once the server has accepted the change, the stored value is invalidated.
        package mutating func modify(
            _ key: EntityKey,
            _ change: @escaping @Sendable (any CacheEntity) -> any CacheEntity
        ) {
            add(key, accepted: [.invalidate(.entity(key))]) { value in (value as? any CacheEntity).map(change) ?? value
            }
        }

        /// Changes the keys of a list and their order.
        public mutating func edit(_ list: QueryKey, _ change: @escaping @Sendable (inout [EntityKey]) -> Void) {
            overlays.append((.query(list), .list(change)))
            accepted.append(.invalidate(.query(list)))
        }

        var entityKeys: [EntityKey] { overlays.compactMap(\.key.entity) }

        /// Invalidates the stored values that the changes apply to.
        var invalidations: [CacheUpdate.Step] { overlays.map { .invalidate($0.key) } }
    }
}
