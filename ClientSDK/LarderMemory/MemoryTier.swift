public import Synchronization

/// An in-memory cache: values by key, limited by count and cost. Safe from any thread.
///
/// A full tier evicts the value with the lowest score, and scores of unused values decay (GreedyDual-Size). Values with equal scores, as
/// without scores, are evicted in LRU order: the one that was used longest ago leaves first. A value that is stored again under its key
/// counts as new.
///
/// Every operation is O(1) unless stated otherwise. Removed entries are released and reported after the lock.
///
/// ```swift
/// let tier = MemoryTier<String, [UInt8]>(limits: .init(count: 1_000, cost: 16 << 20))
/// tier.store([1, 2, 3], for: "a", cost: 3)
/// print(tier["a"]?.count ?? 0)
/// ```
public final class MemoryTier<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    @usableFromInline let state: Mutex<MemoryEntries<Key, Value>>
    private let onDeparture: (@Sendable (Departure) -> Void)?

    /// Creates an empty tier.
    public convenience init(limits: Limits) { self.init(limits: limits, onDeparture: nil) }

    /// - Parameter onDeparture: called with every removed entry, while no lock is held.
    package init(limits: Limits, onDeparture: (@Sendable (Departure) -> Void)?) {
        state = Mutex(MemoryEntries(limits))
        self.onDeparture = onDeparture
    }

    /// Reports what leaves during a change, after the lock.
    private func change<Result: Sendable>(
        _ body: (inout MemoryEntries<Key, Value>, inout [Departure]) -> Result
    ) -> Result {
        let (result, gone) = state.withLock { state in
            var gone: [Departure] = []
            return (body(&state, &gone), gone)
        }
        if let onDeparture { for departure in gone { onDeparture(departure) } }
        return result
    }

    // MARK: Reading

    /// The value of a key; nil if there is none.
    @inlinable public subscript(key: Key) -> Value? { state.withLock { $0.use(key) } }

    /// Like the subscript, but counts neither as a hit nor as a use.
    package func peek(_ key: Key) -> Value? { state.withLock { $0.peek(key) } }

    /// The keys of all entries, in no order. O(n).
    public var keys: [Key] { state.withLock { Array($0.slots.keys) } }

    /// The number of entries.
    public var count: Int { state.withLock { $0.slots.count } }

    /// The sum of the costs of all entries.
    public var cost: Int { state.withLock { $0.cost } }

    /// The counters.
    package var statistics: Statistics { state.withLock { $0.statistics } }

    // MARK: Writing

    /// Stores a value and evicts entries to make room.
    ///
    /// - Parameters:
    ///   - value: the value to store.
    ///   - key: its key. A value under the same key is replaced.
    ///   - cost: counted against the limit; less than 0 counts as 0. A value that costs more than the limit is not stored.
    ///   - score: the effort to get it again divided by its cost, in any unit. Used to the nearest power of two between 2⁻³² and 2³¹.
    public func store(_ value: Value, for key: Key, cost: Int = 1, score: Double = 1) {
        change { $0.store(value, for: key, cost: max(0, cost), score: score, &$1) }
    }

    /// Removes a value; returns it if it was there.
    @discardableResult public func remove(_ key: Key) -> Value? {
        change { state, gone in
            if let slot = state.slots[key] { state.remove(slot, .removed, &gone) }
            return gone.first?.value
        }
    }

    /// Removes everything.
    public func removeAll() { change { $0.trim(to: Limits(count: 0), .removed, &$1) } }

    /// Evicts entries down to a count and a cost, as under memory pressure.
    public func trim(toCount count: Int = .max, cost: Int = .max) {
        change { $0.trim(to: Limits(count: count, cost: cost), .pressure, &$1) }
    }

    /// Changes the limits; the excess is evicted at once.
    public func setLimits(_ limits: Limits) { change { $0.setLimits(limits, nil, &$1) } }

    /// Changes the limits under memory pressure; the excess is evicted at once, for that reason.
    package func setLimitsUnderPressure(_ limits: Limits) { change { $0.setLimits(limits, .pressure, &$1) } }
}

/// Removed entries, collected while a lock is held and reported after it. Safe from any thread.
package final class DepartureList<Departure: Sendable>: Sendable {
    private let list = Mutex<[Departure]>([])

    package init() {}

    package func add(_ departure: Departure) { list.withLock { $0.append(departure) } }

    /// Returns all departures and forgets them.
    package func take() -> [Departure] {
        list.withLock { list in
            defer { list = [] }
            return list
        }
    }
}
