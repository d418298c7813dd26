public import LarderStorage
import LarderTime

/// Looks up the entities of an index, with pending local changes applied.
public struct EntityLookup {
    /// The keys of the index, in order.
    public let keys: [EntityKey]
    /// The number of requested entities that are no longer stored.
    public internal(set) var missing = 0
    /// The invalidated entities, with the times of their values and of their invalidation.
    var stale: [(key: EntityKey, fetchedAt: WallTime, invalid: Stamp)] = []
    /// The number of pending changes that were applied.
    var pending = 0
    // An assembly looks up every entity of an index (`list`) and keeps the results (`found`). The next assembly gets those results
    // (`earlier`) and looks up only the entities that have changed since (`changed`). A declared list also places the entities
    // that may have moved into or within it (`changes`).
    /// The results of the previous assembly, call by call.
    var earlier: [FoundEntities?] = []
    /// The entities that have changed since the previous assembly.
    var changed: [EntityKey] = []
    /// The entities that may have moved, if the list is a declared one.
    var changes: ListChanges?
    /// Whether one of the entities that may have moved is no longer stored.
    private(set) var lacksCandidates = false
    /// The results of this lookup.
    private(set) var found: [FoundEntities?] = []
    /// The index, with the marks and notes of its members; nil for a lookup without an index.
    let list: StoredQuery?
    /// The latest invalidation of a tag of the index.
    var invalid = Stamp.never
    /// The pages of a timeline besides the newest.
    var pages: [PageState] = []
    let find: (EntityKey, (StoredEntityDecoder)) -> StoredEntity?
    let overlays: EntityTable

    init(
        keys: [EntityKey],
        list: StoredQuery? = nil,
        overlays: EntityTable,
        find: @escaping (EntityKey, StoredEntityDecoder) -> StoredEntity?
    ) {
        self.keys = keys
        self.list = list
        self.overlays = overlays
        self.find = find
    }

    /// An entity, if it is stored.
    public mutating func entity<E: CacheEntity>(_ type: E.Type, _ key: EntityKey) -> E? {
        var remark = FoundEntities.Remark(place: 0, key: key)
        let entity = look(type, &remark)
        take(remark)
        return entity
    }

    /// The visible value of an entity, and facts about it.
    ///
    /// The facts are not returned together with the value: passing a value that is generic over a user's type costs more than creating
    /// it.
    private func look<E: CacheEntity>(_ type: E.Type, _ remark: inout FoundEntities.Remark) -> E? {
        let stored = find(remark.key, { try E.codec.decode($0) })
        let (value, pending) = overlays.visible(stored?.value, remark.key)
        remark.pending = pending
        guard let entity = value as? E else {
            let isHidden = value == nil && stored != nil
            remark.isMissing = !isHidden
            return nil
        }
        remark.note(stored)
        return entity
    }

    /// An entity that may have moved into the list. It is counted only if it belongs to the list.
    mutating func candidate<E: CacheEntity>(_ type: E.Type, _ key: EntityKey, where isMember: (E) -> Bool) -> E? {
        var remark = FoundEntities.Remark(place: 0, key: key)
        guard let entity = look(type, &remark) else {
            if remark.isMissing, changes?.recorded.contains(key) ?? false { lacksCandidates = true }
            return nil
        }
        guard isMember(entity) else { return nil }
        take(remark)
        return entity
    }

    private mutating func take(_ remark: FoundEntities.Remark) {
        pending += remark.pending
        guard remark.isCounted else { return }
        if remark.isMissing { missing += 1 }
        if let since = remark.staleSince { stale.append((remark.key, since, remark.invalid)) }
    }

    /// All entities of a type in the index, in order; entities that are no longer stored are left out and counted.
    public mutating func entities<E: CacheEntity>(_ type: E.Type) -> [E] {
        if let (values, remarks) = foundAgain(type) {
            note(FoundEntities(values: values, remarks: remarks))
            return values
        }
        var result: [E] = []
        result.reserveCapacity(keys.count)
        var remarks: [FoundEntities.Remark] = []
        var isWhole = true
        let name = E.entityType
        for key in keys where key.type == name {
            var remark = FoundEntities.Remark(place: result.count, key: key)
            guard let entity = look(type, &remark) else {
                isWhole = false
                take(remark)
                continue
            }
            if remark.isNotable { remarks.append(remark) }
            result.append(entity)
        }
        note(FoundEntities(values: result, remarks: remarks), isWhole: isWhole)
        return result
    }

    /// The result of an earlier lookup, with changed entities looked up again; nil if there is no earlier lookup, or if an entity is no
    /// longer stored.
    private func foundAgain<E: CacheEntity>(_ type: E.Type) -> (values: [E], remarks: [FoundEntities.Remark])? {
        guard let known, var values = known.values as? [E] else { return nil }
        let name = E.entityType
        var remarks = known.remarks
        let changed = changed.filter { $0.type == name }
        guard !changed.isEmpty else { return (values, remarks) }
        var place = 0
        for key in keys where key.type == name {
            defer { place += 1 }
            guard changed.contains(key) else { continue }
            var remark = FoundEntities.Remark(place: place, key: key)
            guard let entity = look(type, &remark) else { return nil }
            values[place] = entity
            remarks.removeAll { $0.place == place }
            if remark.isNotable { remarks.append(remark) }
        }
        return (values, remarks.sorted { $0.place < $1.place })
    }

    /// The result of the earlier call that corresponds to the next one.
    var known: FoundEntities? { found.count < earlier.count ? earlier[found.count] : nil }

    /// Counts the remarks and keeps the result for the next lookup.
    ///
    /// - Parameter isWhole: whether nothing was missing. Otherwise the result is not kept.
    mutating func note(_ entities: FoundEntities, isWhole: Bool = true) {
        for remark in entities.remarks { take(remark) }
        found.append(isWhole ? entities : nil)
    }
}

typealias StoredEntityDecoder = ([UInt8]) throws -> any Sendable
