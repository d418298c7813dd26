import LarderMemory
import Synchronization

/// Keeps what leaves memory until no lock is held, and counts evictions until they are reported. Memory is changed under locks, where no event
/// may be reported, and where no value of the app may be released, because its end may call the cache.
///
/// Safe from any thread.
final class EvictionTally: Sendable {
    private struct State {
        var counts: [String: (count: Int, bytes: Int)] = [:]
        var gone: [any Sendable] = []
    }

    private let state = Mutex(State())

    /// Takes an entry that left.
    func note<Key, Value>(_ departure: MemoryTier<Key, Value>.Departure) {
        state.withLock { state in
            state.gone.append(departure.value)
            switch departure.reason {
            // Removed on request: not an eviction.
            case .replaced, .removed: return
            case .count, .cost, .pressure: break
            }
            let old = state.counts[departure.reason.rawValue] ?? (0, 0)
            state.counts[departure.reason.rawValue] = (old.count + 1, old.bytes &+ departure.cost)
        }
    }

    /// Takes values that are to be released later.
    func keep(_ values: (any Sendable)?) {
        if let values { state.withLock { $0.gone.append(values) } }
    }

    /// Reports the counted evictions, and releases what has left. Called without a lock.
    func tell(_ onEvent: (CacheEvent) -> Void) {
        let all = state.withLock { state in
            defer { state = State() }
            return state
        }
        for (reason, sum) in all.counts.sorted(by: { $0.key < $1.key }) {
            onEvent(.evicted(reason: reason, count: sum.count, bytes: sum.bytes))
        }
    }
}
