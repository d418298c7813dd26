import LarderTime

/// A query index as the memory tier keeps it.
struct StoredQuery: Sendable {
    var query: DiskQuery
    var times: ValueTimes
    /// The order of the request that brought or confirmed it; 0 where that was in another process.
    var order: UInt64
    /// By which requests its items were confirmed, where answers are merged into it.
    var orders = QueryOrders()
    /// As an entity's.
    var sight = StoredEntity.memoryOnly
    /// Whether its resource is kept from the disk: so it stays, whoever changes it.
    var isMemoryOnly = false

    init(_ query: DiskQuery, times: ValueTimes, order: UInt64) {
        self.query = query
        self.times = times
        self.order = order
    }

    /// From disk.
    init(_ query: DiskQuery, epoch: UInt64, isDistrusted: Bool, sight: UInt64) {
        self.init(
            query,
            times: ValueTimes(
                fetchedAt: query.fetchedAt,
                validatedAt: query.validatedAt,
                expiresAt: query.expiresAt,
                isUncertain: query.isClockUncertain || isDistrusted,
                epoch: epoch
            ),
            order: 0
        )
        self.sight = sight
    }

    var cost: Int { 256 + query.details.count + query.ids.count * 64 }
}
