import LarderTime
import Synchronization

/// What happened in a world, as far back as its size allows. Safe from any thread.
///
/// Entries are kept as they came and are made readable when somebody asks: writing one costs a lock and a copy.
final class Journal: Sendable {
    private struct State {
        var ring: [JournalEntry] = []
        /// Where the next entry goes once the ring is full.
        var next = 0
        var count = 0
        var observers: [UInt64: @Sendable (JournalEntry) -> Void] = [:]
        var lastObserver: UInt64 = 0
        var lastActivity = MonotonicTime(nanoseconds: 0)
    }

    private let state = Mutex(State())
    private let observerCount = Atomic<Int>(0)
    /// How many entries are kept. 0 keeps none.
    let capacity: Int

    init(capacity: Int) { self.capacity = capacity }

    var isEnabled: Bool { capacity > 0 }

    /// Adds an entry, and tells the observers, who may look at the journal but must not wait.
    func append(_ entry: JournalEntry, uptime: MonotonicTime) {
        guard capacity > 0 else { return }
        let number = state.withLock { state in
            state.count += 1
            var entry = entry
            entry.number = state.count
            state.lastActivity = uptime
            if state.ring.count < capacity {
                state.ring.append(entry)
            } else {
                state.ring[state.next] = entry
                state.next = (state.next + 1) % capacity
            }
            return state.count
        }
        guard observerCount.load(ordering: .relaxed) > 0 else { return }
        var numbered = entry
        numbered.number = number
        let observers = state.withLock { state in state.observers.sorted { $0.key < $1.key }.map(\.value) }
        for observer in observers { observer(numbered) }
    }

    /// The entries that are still kept, oldest first.
    var entries: [JournalEntry] {
        state.withLock { state in
            state.ring.count < capacity ? state.ring : Array(state.ring[state.next...] + state.ring[..<state.next])
        }
    }

    /// How many entries there ever were.
    var countEver: Int { state.withLock { $0.count } }

    /// When the last entry was written, on the world's monotonic clock.
    var lastActivity: MonotonicTime { state.withLock { $0.lastActivity } }

    /// Forgets everything; numbers go on.
    func clear() {
        state.withLock { state in
            state.ring.removeAll()
            state.next = 0
        }
    }

    /// Calls `body` with every entry from now on, on the thread that writes it.
    func observe(_ body: @escaping @Sendable (JournalEntry) -> Void) -> UInt64 {
        state.withLock { state in
            state.lastObserver += 1
            state.observers[state.lastObserver] = body
            observerCount.store(state.observers.count, ordering: .relaxed)
            return state.lastObserver
        }
    }

    func stopObserving(_ id: UInt64) {
        // Released behind the lock: what it captured may end here.
        let removed = state.withLock { state in
            defer { observerCount.store(state.observers.count, ordering: .relaxed) }
            return state.observers.removeValue(forKey: id)
        }
        _ = consume removed
    }
}
