import LarderTime

/// How a value that shows entities is taken apart into them and a rest, and put together again.
public struct Normalizer<Value: Sendable>: Sendable {
    /// Hands out the entities that the value shows, in order, and gives the bytes of what is left.
    public let split: @Sendable (Value, inout EntityCollector) throws -> [UInt8]
    /// Puts a value together from the rest and the entities as they are now; throws where the rest is not what `split` gave.
    public let join: @Sendable ([UInt8], inout EntityLookup) throws -> Value
    /// How an answer is merged into what is stored, given as it would be stored; nil: it replaces it.
    var merge: (@Sendable (DiskQuery, _ lifetime: Duration?) -> QueryMerge)?

    /// A way there and back.
    public init(
        split: @escaping @Sendable (Value, inout EntityCollector) throws -> [UInt8],
        join: @escaping @Sendable ([UInt8], inout EntityLookup) throws -> Value
    ) {
        self.split = split
        self.join = join
    }
}

/// Takes the entities of a value.
public struct EntityCollector {
    var drafts: [EntityDraft] = []

    /// Takes an entity.
    ///
    /// - Parameter completeness: how much of it the value shows. What is stored and more complete stays, in the same version.
    public mutating func add<E: Entity>(_ entity: E, completeness: Completeness = .complete) {
        drafts.append(EntityDraft(entity, completeness: completeness))
    }
}

/// An entity on its way to the store.
struct EntityDraft: Sendable {
    let key: EntityKey
    let value: any Sendable
    let version: Int64?
    let completeness: DiskEntity.Completeness
    let encode: @Sendable () throws -> [UInt8]
    let isEqual: @Sendable (any Sendable) -> Bool
    let isMemoryOnly: Bool

    init<E: Entity>(_ entity: E, completeness: Completeness) {
        key = entity.entityKey
        value = entity
        version = entity.entityVersion
        isMemoryOnly = E.isMemoryOnly
        self.completeness = completeness.step
        encode = { try E.codec.encode(entity) }
        isEqual = { ($0 as? E) == entity }
    }

    init<Value: Sendable & Equatable>(
        _ key: EntityKey,
        _ value: Value,
        codec: Codec<Value>,
        version: Int64?,
        completeness: Completeness
    ) {
        self.key = key
        self.value = value
        self.version = version
        isMemoryOnly = (Value.self as? any Entity.Type)?.isMemoryOnly ?? false
        self.completeness = completeness.step
        encode = { try codec.encode(value) }
        isEqual = { ($0 as? Value) == value }
    }
}

/// Gives the entities that an index names, as they are shown now: with what is pending over them.
public struct EntityLookup {
    /// The entities that the index names, in order.
    public let keys: [EntityKey]
    /// How many of those asked for are not stored any more.
    public internal(set) var missing = 0
    /// Those that were declared stale, and since when their values are what they are.
    var stale: [(key: EntityKey, fetchedAt: WallTime)] = []
    var pending = 0
    /// What a lookup for the same index has found before, call by call, and which entities are others since.
    var earlier: [FoundEntities?] = []
    var changed: [EntityKey] = []
    /// What this one has found.
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
    public mutating func entity<E: Entity>(_ type: E.Type, _ key: EntityKey) -> E? {
        var remark = FoundEntities.Remark(place: 0, key: key)
        let entity = look(type, &remark)
        take(remark)
        return entity
    }

    /// What there is to see of an entity, and what is to be known of it besides.
    ///
    /// The remark is no result: what is generic over a user's type costs more to hand about than to make.
    private func look<E: Entity>(_ type: E.Type, _ remark: inout FoundEntities.Remark) -> E? {
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

    /// All entities of a type that the index names, in order; those that are not stored any more are left out and counted.
    public mutating func entities<E: Entity>(_ type: E.Type) -> [E] {
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

    /// What an earlier lookup has found, with those looked up anew that are others since; nil where there is no earlier one, or one of
    /// them is not there any more.
    private func foundAgain<E: Entity>(_ type: E.Type) -> (values: [E], remarks: [FoundEntities.Remark])? {
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
