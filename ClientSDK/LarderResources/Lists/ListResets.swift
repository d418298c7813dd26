import LarderStorage
import Synchronization

/// The lists whose refresh in flight drops the items that its page does not overlap. Safe from any thread.
final class ListResets: Sendable {
    private let counts = Mutex<[QueryKey: Int]>([:])

    func begin(_ key: QueryKey) { counts.withLock { $0[key, default: 0] += 1 } }

    func end(_ key: QueryKey) {
        counts.withLock { counts in
            let count = (counts[key] ?? 0) - 1
            counts[key] = count > 0 ? count : nil
        }
    }

    func contains(_ key: QueryKey) -> Bool { counts.withLock { $0[key] != nil } }
}
