public import LarderStorage
import LarderTime

/// Splits a value into entities and a remainder, and joins them again.
public struct Normalizer<Value: Sendable>: Sendable {
    /// Passes the entities of the value to the collector in order, and returns the encoded remainder.
    public let split: @Sendable (Value, inout EntityCollector) throws -> [UInt8]
    /// Joins a value from the remainder and the current entities; throws if the remainder cannot be decoded.
    public let join: @Sendable ([UInt8], inout EntityLookup) throws -> Value
    /// How an answer is merged into the stored index; nil: it replaces the index.
    var merge: (@Sendable (DiskQuery, _ stated: StatedFreshness?) -> QueryMerge)?

    /// Creates a normalizer.
    public init(
        split: @escaping @Sendable (Value, inout EntityCollector) throws -> [UInt8],
        join: @escaping @Sendable ([UInt8], inout EntityLookup) throws -> Value
    ) {
        self.split = split
        self.join = join
    }
}

/// Collects the entities of a value.
public struct EntityCollector {
    var drafts: [EntityDraft] = []

    /// Adds an entity.
    ///
    /// - Parameter completeness: how complete the entity is. A more complete stored entity of the same version stays.
    public mutating func add<E: CacheEntity>(_ entity: E, completeness: Completeness = .complete) {
        drafts.append(EntityDraft(entity, completeness: completeness))
    }
}

/// Looks up the entities of an index, with pending local changes applied.
public struct EntityLookup {
    /// The keys of the index, in order.
    public let keys: [EntityKey]
    /// The number of requested entities that are no longer stored.
    public internal(set) var missing = 0
    /// The invalidated entities, with the times of their values.
    var stale: [(key: EntityKey, fetchedAt: WallTime)] = []
    var pending = 0
    /// The results of an earlier lookup for the same index, call by call, and the entities that have changed since.
    var earlier: [FoundEntities?] = []
    var changed: [EntityKey] = []
    /// The results of this lookup.
    private(set) var found: [FoundEntities?] = []
    let find: (EntityKey, (StoredEntityDecoder)) -> StoredEntity?
    let overlays: EntityTable

    init(
        keys: [EntityKey],
        overlays: EntityTable,
        find: @escaping (EntityKey, StoredEntityDecoder) -> StoredEntity?
    ) {
        self.keys = keys
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
        if let stored, stored.isInvalidated { remark.staleSince = stored.times.fetchedAt }
        return entity
    }

    private mutating func take(_ remark: FoundEntities.Remark) {
        pending += remark.pending
        if remark.isMissing { missing += 1 }
        if let since = remark.staleSince { stale.append((remark.key, since)) }
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
            if remark.saysAnything { remarks.append(remark) }
            result.append(entity)
        }
        note(FoundEntities(values: result, remarks: remarks), isWhole: isWhole)
        return result
    }

    /// The result of an earlier lookup, with changed entities looked up again; nil if there is no earlier lookup, or if an entity is no
    /// longer stored.
    private func foundAgain<E: CacheEntity>(_ type: E.Type) -> (values: [E], remarks: [FoundEntities.Remark])? {
        guard found.count < earlier.count, let known = earlier[found.count], var values = known.values as? [E] else {
            return nil
        }
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
            if remark.saysAnything { remarks.append(remark) }
        }
        return (values, remarks.sorted { $0.place < $1.place })
    }

    private mutating func note(_ entities: FoundEntities, isWhole: Bool = true) {
        for remark in entities.remarks { take(remark) }
        found.append(isWhole ? entities : nil)
    }
}

typealias StoredEntityDecoder = ([UInt8]) throws -> any Sendable
