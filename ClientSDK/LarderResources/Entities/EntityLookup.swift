package import LarderStorage
import LarderTime

/// Looks up the entities of an index, with pending local changes applied.
package struct EntityLookup {
    /// The keys of the index, in order.
    package let keys: [EntityKey]
    /// The number of requested entities that are no longer stored.
    package internal(set) var missing = 0
    /// The invalidated entities, with the times of their values, of the commits that have stored these, and of their invalidation, and
    /// whether they are complete.
    var stale: [(key: EntityKey, fetchedAt: WallTime, changed: Stamp, invalid: Stamp, isWhole: Bool)] = []
    /// The number of pending changes that were applied.
    var pending = 0
    /// The entities that may have moved, if the list is a declared one.
    var changes: ListChanges?
    /// Whether one of the entities that may have moved is no longer stored.
    private(set) var lacksCandidates = false
    /// The index, with the marks and notes of its members.
    let list: StoredQuery
    /// The latest invalidation of a tag of the index.
    var invalid = Stamp.never
    /// The pages of a timeline besides the newest.
    var pages: [FreshnessFacts] = []
    let overlays: Overlays
    let find: (EntityKey, (StoredEntityDecoder)) -> StoredEntity?

    /// An entity, if it is stored.
    package mutating func entity<E: CacheEntity>(_ type: E.Type, _ key: EntityKey) -> E? {
        var remark = EntityRemark(key)
        let entity = look(type, &remark)
        take(remark)
        return entity
    }

    /// The visible value of an entity, and facts about it.
    ///
    /// The facts are not returned together with the value: passing a value that is generic over a user's type costs more than creating
    /// it.
    func look<E: CacheEntity>(_ type: E.Type, _ remark: inout EntityRemark) -> E? {
        let stored = find(remark.key, { try E.codec.decode($0) })
        let (value, pending) = overlays.visible(stored?.value, remark.key)
        remark.pending = pending
        remark.isLocal = stored == nil
        guard let entity = value as? E else {
            // Otherwise a pending change hides it.
            remark.isMissing = value != nil || stored == nil
            return nil
        }
        remark.note(stored)
        return entity
    }

    /// An entity that may have moved into the list. It is counted only if it belongs to the list.
    mutating func candidate<E: CacheEntity>(_ type: E.Type, _ key: EntityKey, where isMember: (E) -> Bool) -> E? {
        var remark = EntityRemark(key)
        guard let entity = look(type, &remark) else {
            if remark.isMissing, changes?.recorded.contains(key) ?? false { lacksCandidates = true }
            return nil
        }
        guard isMember(entity) else { return nil }
        take(remark)
        return entity
    }

    /// - Parameter isCounted: whether the freshness of the whole value depends on it, and not only that of a page.
    mutating func take(_ remark: EntityRemark, isCounted: Bool = true) {
        pending += remark.pending
        guard isCounted else { return }
        if remark.isMissing { missing += 1 }
        if let since = remark.staleSince {
            stale.append((remark.key, since, remark.changed, remark.invalid, remark.isWhole))
        }
    }

    /// All entities of a type in the index, in order; entities that are no longer stored are left out and counted.
    package mutating func entities<E: CacheEntity>(_ type: E.Type) -> [E] {
        let name = E.entityType
        return keys.compactMap { key in key.type == name ? entity(type, key) : nil }
    }
}

/// Facts about an entity besides its value.
struct EntityRemark: Sendable {
    let key: EntityKey
    /// The number of pending local changes.
    var pending = 0
    /// When its value was fetched, if the entity is invalidated; otherwise nil.
    var staleSince: WallTime?
    /// When the commit that has stored its value began, if the entity is invalidated.
    var changed = Stamp.never
    /// When it was last invalidated.
    var invalid = Stamp.never
    /// Whether it is complete, if the entity is invalidated.
    var isWhole = false
    /// Whether it is no longer stored.
    var isMissing = false
    /// Whether the server does not know it yet.
    var isLocal = false

    init(_ key: EntityKey) { self.key = key }

    /// Notes whether the stored value is invalidated.
    mutating func note(_ stored: StoredEntity?) {
        guard let stored, stored.isInvalidated else { return }
        (staleSince, changed, invalid) = (stored.times.fetchedAt, stored.changed, stored.invalid)
        isWhole = stored.completeness == .complete
    }
}

typealias StoredEntityDecoder = ([UInt8]) throws -> any Sendable
