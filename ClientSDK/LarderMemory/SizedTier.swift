package import LarderTime
import Synchronization

/// A memory tier with a budget for small and one for large entries, so that neither size evicts the other. Safe from any thread.
///
/// Each budget is a `MemoryTier` of its own. With `SizeBudgets.one` there is only one, at the cost of a plain tier.
package final class SizedTier<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    /// A removed entry and the reason.
    package typealias Departure = MemoryTier<Key, Value>.Departure

    /// Nil with one budget.
    @usableFromInline let small: MemoryTier<Key, Value>?
    @usableFromInline let large: MemoryTier<Key, Value>
    /// Held while room is made in one tier for the other.
    private let budgets: Mutex<SizeBudgets>
    private let pending = DepartureList<Departure>()
    private let onDeparture: (@Sendable (Departure) -> Void)?

    /// - Parameters:
    ///   - budgets: the limits. The number of budgets stays when `setBudgets` changes them.
    ///   - policy: selects the entry to evict, within a budget.
    ///   - clock: used by the tiers.
    ///   - onDeparture: called with every removed entry, while no lock is held.
    package init(
        _ budgets: SizeBudgets,
        policy: EvictionPolicy = .adaptive,
        clock: any MonotonicClock = SystemMonotonicClock(),
        onDeparture: (@Sendable (Departure) -> Void)? = nil
    ) {
        self.budgets = Mutex(budgets)
        self.onDeparture = onDeparture
        var note: (@Sendable (Departure) -> Void)?
        if onDeparture != nil { note = { [pending] in pending.add($0) } }
        func tier(_ cost: Int) -> MemoryTier<Key, Value> {
            MemoryTier(limits: .init(cost: cost), policy: policy, clock: clock, onDeparture: note)
        }
        small = budgets.isDivided ? tier(budgets.small) : nil
        large = tier(budgets.isDivided ? budgets.large : budgets.total)
    }

    // MARK: Reading

    /// The value of a key; nil if there is none.
    @inlinable package subscript(key: Key) -> Value? { small?[key] ?? large[key] }

    /// Like the subscript, but counts neither as a hit nor as a use.
    @inlinable package func peek(_ key: Key) -> Value? { small?.peek(key) ?? large.peek(key) }

    /// The sum of the costs of all entries.
    package var cost: Int { (small?.cost ?? 0) + large.cost }

    /// The keys of all entries, in no order. O(n).
    package var keys: [Key] { (small?.keys ?? []) + large.keys }

    // MARK: Writing

    /// Stores a value in the budget of its cost, and evicts entries to make room. A value that costs more than the budget, with lending
    /// also more than what the other budget leaves free, is not stored.
    ///
    /// - Parameter score: the effort to get it again divided by its cost; used by `EvictionPolicy.greedyDual` only.
    package func store(_ value: Value, for key: Key, cost: Int = 1, score: Double = 1) {
        defer { tell() }
        guard let small else { return large.store(value, for: key, cost: cost, score: score) }
        budgets.withLock { budgets in
            let isLarge = cost > budgets.threshold
            let (own, other) = isLarge ? (large, small) : (small, large)
            other.remove(key)
            if budgets.lends {
                // The other tier gives back what it has borrowed and this one may have; then this one may use what the other leaves.
                let needed = min(isLarge ? budgets.large : budgets.small, own.cost + max(0, cost))
                other.setLimits(.init(cost: budgets.total - needed))
                own.setLimits(.init(cost: budgets.total - other.cost))
            }
            own.store(value, for: key, cost: cost, score: score)
        }
    }

    /// Removes everything.
    package func removeAll() {
        small?.removeAll()
        large.removeAll()
        tell()
    }

    /// Evicts entries down to a cost, as under memory pressure; each budget gives its share.
    package func trim(cost target: Int) {
        defer { tell() }
        guard let small else { return large.trim(cost: target) }
        let cost = cost
        guard cost > target else { return }
        let share = Double(max(0, target)) / Double(cost)
        small.trim(cost: Int(Double(small.cost) * share))
        large.trim(cost: Int(Double(large.cost) * share))
    }

    /// Changes the budgets; the excess is evicted at once.
    package func setBudgets(_ new: SizeBudgets) {
        defer { tell() }
        budgets.withLock { budgets in
            budgets = new
            guard let small else { return large.setLimits(.init(cost: new.total)) }
            small.setLimits(.init(cost: new.lends ? new.total - min(large.cost, new.large) : new.small))
            large.setLimits(.init(cost: new.lends ? new.total - min(small.cost, new.small) : new.large))
        }
    }

    private func tell() {
        guard let onDeparture else { return }
        for departure in pending.take() { onDeparture(departure) }
    }
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
