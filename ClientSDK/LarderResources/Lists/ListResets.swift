import LarderStorage
import Synchronization

/// The lists with a refresh in flight that drops items which its page does not overlap (`GapPolicy.reset`). Safe from
/// any thread.
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
