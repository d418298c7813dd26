import LarderStorage
import LarderTime

/// A query index in the memory tier.
struct StoredQuery: Sendable {
    var query: DiskQuery
    var times: Freshness.Times

    /// Its place in the order of changes.
    var place: DiskStore.Place { DiskStore.Place(asked: query.asked, invalid: query.invalid) }

    var cost: Int { 256 + query.details.count + query.members.count * 64 }

    /// Whether everything in it counts as outdated until it is confirmed: it was invalidated, or the clock was set back.
    ///
    /// - Parameter epoch: the present one (`ClockGuard`).
    func isInvalid(in epoch: UInt64) -> Bool {
        query.isInvalidated || query.isClockUncertain || times.isUncertain || times.epoch != epoch
    }
}

extension StoredQuery {
    init(_ query: DiskQuery, epoch: UInt64, areTimesUncertain: Bool) {
        self.init(query: query, times: Freshness.Times(query.times, isUncertain: areTimesUncertain, epoch: epoch))
    }
}
