public import LarderStorage

/// Splits a value into entities and a remainder, and joins them again.
public struct Normalizer<Value: Sendable>: Sendable {
    /// Passes the entities of the value to the collector in order, and returns the encoded remainder.
    public let split: @Sendable (Value, inout EntityCollector) throws -> [UInt8]
    /// Joins a value from the remainder and the current entities; throws if the remainder cannot be decoded.
    public let join: @Sendable ([UInt8], inout EntityLookup) throws -> Value
    /// How an answer is merged into the stored index; nil: it replaces the index.
    var merge: (@Sendable (DiskQuery, _ lifetime: Duration?) -> QueryMerge)?

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

/// An entity to be stored.
struct EntityDraft: Sendable {
    let key: EntityKey
    let value: any Sendable
    let version: Int64?
    let completeness: DiskEntity.Completeness
    let encode: @Sendable () throws -> [UInt8]
    let isEqual: @Sendable (any Sendable) -> Bool
    let isMemoryOnly: Bool

    init<E: CacheEntity>(_ entity: E, completeness: Completeness) {
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
        codec: PayloadCodec<Value>,
        version: Int64?,
        completeness: Completeness
    ) {
        self.key = key
        self.value = value
        self.version = version
        isMemoryOnly = (Value.self as? any CacheEntity.Type)?.isMemoryOnly ?? false
        self.completeness = completeness.step
        encode = { try codec.encode(value) }
        isEqual = { ($0 as? Value) == value }
    }
}
