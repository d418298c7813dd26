import LarderStorage
import LarderTime

/// A query index in the memory tier.
struct StoredQuery: Sendable {
    var query: DiskQuery
    var times: Freshness.Times
    /// The order of the request that returned or confirmed it; 0 if it was read from the disk.
    var order: UInt64
    /// The requests that confirmed its items, if answers are merged into it.
    var orders = QueryOrders()
    /// The number of foreign commits that were seen: see `StoredEntity.seenCommits`.
    var seenCommits = StoredEntity.memoryOnly
    /// Whether its resource must not be written to the disk, also by later changes.
    var isMemoryOnly = false

    init(_ query: DiskQuery, times: Freshness.Times, order: UInt64) {
        self.query = query
        self.times = times
        self.order = order
    }

    init(_ query: DiskQuery, epoch: UInt64, areTimesUncertain: Bool, seenCommits: UInt64) {
        self.init(
            query,
            times: Freshness.Times(
                fetchedAt: query.fetchedAt,
                validatedAt: query.validatedAt,
                expiresAt: query.expiresAt,
                terms: query.terms,
                isUncertain: query.isClockUncertain || areTimesUncertain,
                epoch: epoch
            ),
            order: 0
        )
        self.seenCommits = seenCommits
    }

    var cost: Int { 256 + query.details.count + query.members.count * 64 }

    /// Whether everything in it counts as outdated until it is confirmed: it was invalidated, or the clock was set back.
    ///
    /// - Parameter epoch: the present one (`ClockGuard`).
    func isInvalid(in epoch: UInt64) -> Bool {
        query.isInvalidated || query.isClockUncertain || times.isUncertain || times.epoch != epoch
    }
}
