import LarderStorage

/// An entity as the memory tier keeps it: decoded, and with what is known of it.
struct StoredEntity: Sendable {
    /// As the server said, without what is pending here.
    var value: any Sendable
    var times: Freshness.Times
    var version: Int64?
    var validator: String?
    var completeness: DiskEntity.Completeness
    var source: DiskEntity.Source
    var isInvalidated: Bool
    /// The order of the request that brought or confirmed it; 0 where that was in another process.
    var order: UInt64
    /// What it counts against the memory tier's budget, in bytes.
    var cost: Int
    /// How many commits of others had been seen when the disk had it like this: it is of no use when there are more.
    var seenCommits = Self.memoryOnly
    /// Whether it must not be written to the disk, also by later changes.
    var isMemoryOnly = false

    /// The seenCommits of what is in memory alone: no other process has anything to do with it.
    static let memoryOnly = UInt64.max

    /// What it counts beside its bytes.
    static let overhead = 256
}

extension StoredEntity {
    init(_ entity: DiskEntity, value: any Sendable, epoch: UInt64, areTimesUncertain: Bool, seenCommits: UInt64) {
        self.init(
            value: value,
            times: Freshness.Times(
                fetchedAt: entity.fetchedAt,
                validatedAt: entity.validatedAt,
                expiresAt: entity.expiresAt,
                terms: entity.terms,
                isUncertain: entity.isClockUncertain || areTimesUncertain,
                epoch: epoch
            ),
            version: entity.version,
            validator: entity.entityTag,
            completeness: entity.completeness,
            source: entity.source,
            isInvalidated: entity.isInvalidated,
            order: 0,
            cost: entity.payload.count + Self.overhead,
            seenCommits: seenCommits
        )
    }
}
