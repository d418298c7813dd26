import LarderStorage
import LarderTime

/// A query index in the memory tier.
struct StoredQuery: Sendable {
    var query: DiskQuery
    var times: Freshness.Times

    /// Its place in the order of changes.
    var place: DiskStore.Place { DiskStore.Place(asked: query.asked, invalid: query.invalid) }

    var cost: Int { 256 + query.details.count + query.members.count * 64 }
}

extension StoredQuery {
    init(_ query: DiskQuery) { self.init(query: query, times: Freshness.Times(query.times, asked: query.asked)) }
}
