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
    var entities: [EntityKey] {
        known.withLock { known in
            known.keys.compactMap { if case .entity(let key) = $0 { key } else { nil } }
        }
    }

    func note(_ key: StoredKey, _ place: DiskStore.Place) {
        edit(key) { known in
            guard place.asked >= known.asked else { return }
            let invalid = max(known.invalid, place.invalid)
            known = place
            known.invalid = invalid
        }
    }

    func noteInvalid(_ key: StoredKey, _ stamp: Stamp) { edit(key) { $0.invalid = max($0.invalid, stamp) } }

    private func edit(_ key: StoredKey, _ change: (inout DiskStore.Place) -> Void) {
        known.withLock { known in
            change(&known[key, default: DiskStore.Place(asked: .never)])
            guard known.count > Self.countMaximum else { return }
            func latest(_ place: DiskStore.Place) -> Stamp { max(place.asked, place.invalid) }
            let older = known.sorted { latest($0.value) < latest($1.value) }.prefix(Self.countMaximum / 2)
            for (key, _) in older { known[key] = nil }
        }
    }

    func removeAll() { known.withLock { $0 = [:] } }
}
