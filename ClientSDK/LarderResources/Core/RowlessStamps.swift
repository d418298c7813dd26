import LarderStorage
import Synchronization

/// The stamps of values that have no row on the disk, because memory may evict them: of the latest change or removal, and of an
/// invalidation while nothing was stored.
///
/// Safe from any thread.
/// Bounded: of 4,096 keys the older half is forgotten. What a request in flight for so long returns then counts as newer.
final class RowlessStamps: Sendable {
    private static let countMaximum = 4_096
    private let known = Mutex<[StoredKey: DiskStore.Place]>([:])

    subscript(key: StoredKey) -> DiskStore.Place? { known.withLock { $0.isEmpty ? nil : $0[key] } }

    /// The entities that may have no row.
    var entities: [EntityKey] { known.withLock { $0.keys.compactMap(\.entity) } }

    func note(_ key: StoredKey, _ place: DiskStore.Place) {
        known.withLock { known in
            var newest = known[key].flatMap { $0.asked > place.asked ? $0 : nil } ?? place
            newest.invalid = max(known[key]?.invalid ?? .never, place.invalid)
            known[key] = newest
            guard known.count > Self.countMaximum else { return }
            func latest(_ place: DiskStore.Place) -> Stamp { max(place.asked, place.invalid) }
            let older = known.sorted { latest($0.value) < latest($1.value) }.prefix(Self.countMaximum / 2)
            for (key, _) in older { known[key] = nil }
        }
    }

    func removeAll() { known.withLock { $0 = [:] } }
}
