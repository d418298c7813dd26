import LarderMemory
import Synchronization

/// Counts evictions from memory until they are reported. Memory is changed under locks, where no event may be reported.
///
/// Safe from any thread.
final class EvictionTally: Sendable {
    private let counts = Mutex<[String: (count: Int, bytes: Int)]>([:])

    /// Counts an entry that left.
    func note<Key, Value>(_ departure: MemoryTier<Key, Value>.Departure) {
        switch departure.reason {
        // Removed on request: not an eviction.
        case .replaced, .removed: return
        case .count, .cost, .pressure: break
        }
        counts.withLock { counts in
            let old = counts[departure.reason.rawValue] ?? (0, 0)
            counts[departure.reason.rawValue] = (old.count + 1, old.bytes &+ departure.cost)
        }
    }

    /// Reports the counted evictions. Called without a lock.
    func tell(_ onEvent: (CacheEvent) -> Void) {
        let counts = counts.withLock { counts in
            defer { counts = [:] }
            return counts
        }
        for (reason, sum) in counts.sorted(by: { $0.key < $1.key }) {
            onEvent(.evicted(reason: reason, count: sum.count, bytes: sum.bytes))
        }
    }
}
