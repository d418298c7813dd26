import LarderMemory
import LarderStorage

/// An entity in the memory tier: its decoded value and its metadata.
struct StoredEntity: Sendable {
    /// The server's value, without pending changes.
    var value: any Sendable
    var times: Freshness.Times
    var version: Int64?
    var validator: String?
    var completeness: DiskEntity.Completeness
    /// When the request, the event or the change began that has brought or confirmed it.
    var asked: Stamp
    /// When it was last invalidated.
    var invalid: Stamp
    /// When the commit that has stored the value began.
    var changed = Stamp.never
    /// Its cost against the limit of the memory tier, in bytes.
    var cost: Int

    /// Whether it counts as outdated until it is confirmed.
    var isInvalidated: Bool { invalid > asked }

    /// Its place in the order of changes.
    var place: DiskStore.Place { DiskStore.Place(asked: asked, invalid: invalid, version: version) }

    /// The part of the cost besides the encoded bytes.
    static let overhead = 256
}

extension StoredEntity {
    init(_ entity: DiskEntity, value: any Sendable) {
        self.init(
            value: value,
            times: Freshness.Times(entity.times, asked: entity.asked),
            version: entity.version,
            validator: entity.entityTag,
            completeness: entity.completeness,
            asked: entity.asked,
            invalid: entity.invalid,
            changed: entity.changed,
            cost: entity.payload.count + Self.overhead
        )
    }
}

extension MemoryTier where Key == EntityKey, Value == StoredEntity {
    /// The encoded size of an entity in bytes; 0 if it is not in memory.
    func bytes(of key: EntityKey) -> Int { peek(key).map { max(0, $0.cost - StoredEntity.overhead) } ?? 0 }
}
