package import LarderTime
import Synchronization

/// A memory tier with a budget for small and one for large entries, so that neither size evicts the other. Safe from any thread.
package final class SizedTier<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    /// A removed entry and the reason.
    package typealias Departure = MemoryTier<Key, Value>.Departure

    private struct State {
        var budgets: SizeBudgets
        /// Without entries if there is one budget.
        var small: MemoryEntries<Key, Value>
        var large: MemoryEntries<Key, Value>

        var cost: Int { small.cost + large.cost }
    }

    private let state: Mutex<State>
    private let clock: any MonotonicClock
    private let onDeparture: (@Sendable (Departure) -> Void)?

    /// - Parameters:
    ///   - budgets: the limits. The number of budgets stays when `setBudgets` changes them.
    ///   - policy: selects the entry to evict, within a budget.
    ///   - onDeparture: called with every removed entry, while no lock is held.
    package init(
        _ budgets: SizeBudgets,
        policy: EvictionPolicy = .lru,
        clock: any MonotonicClock = SystemMonotonicClock(),
        onDeparture: (@Sendable (Departure) -> Void)? = nil
    ) {
        state = Mutex(
            State(
                budgets: budgets,
                small: MemoryEntries(.init(cost: budgets.small), policy),
                large: MemoryEntries(.init(cost: budgets.large), policy)
            )
        )
        self.clock = clock
        self.onDeparture = onDeparture
    }

    /// Reports what leaves during a change, after the lock.
    private func change<Result: Sendable>(_ body: (inout State, inout [Departure]) -> Result) -> Result {
        let (result, gone) = state.withLock { state in
            var gone: [Departure] = []
            return (body(&state, &gone), gone)
        }
        if let onDeparture { for departure in gone { onDeparture(departure) } }
        return result
    }

    // MARK: Reading

    /// The value of a key; nil if there is none.
    package subscript(key: Key) -> Value? {
        change { $0.small.use(key, clock, &$1) ?? $0.large.use(key, clock, &$1) }
    }

    /// Like the subscript, but counts neither as a hit nor as a use.
    package func peek(_ key: Key) -> Value? {
        state.withLock { $0.small.peek(key, clock) ?? $0.large.peek(key, clock) }
    }

    /// The sum of the costs of all entries.
    package var cost: Int { state.withLock { $0.cost } }

    /// The keys of all entries, in no order. O(n).
    package var keys: [Key] { state.withLock { Array($0.small.slots.keys) + $0.large.slots.keys } }

    // MARK: Writing

    /// Stores a value in the budget of its cost, and evicts entries to make room. A value that costs more than the budget, with lending
    /// also more than what the other budget leaves free, is not stored.
    ///
    /// - Parameter score: the effort to get it again divided by its cost; used by `EvictionPolicy.greedyDual` only.
    package func store(_ value: Value, for key: Key, cost: Int = 1, score: Double = 1) {
        let cost = max(0, cost)
        change { state, gone in
            let isLarge = cost > state.budgets.threshold
            let own = isLarge ? \State.large : \State.small
            let other = isLarge ? \State.small : \State.large
            if let slot = state[keyPath: other].slots[key] { state[keyPath: other].remove(slot, .removed, &gone) }
            if state.budgets.lends {
                // The other part gives back what it has borrowed and this one may have; then this one may use what the other leaves.
                let (total, budget) = (state.budgets.total, isLarge ? state.budgets.large : state.budgets.small)
                let needed = min(budget, state[keyPath: own].cost + cost)
                state[keyPath: other].setLimits(.init(cost: total - needed), &gone)
                state[keyPath: own].setLimits(.init(cost: total - state[keyPath: other].cost), &gone)
            }
            state[keyPath: own].store(value, for: key, cost: cost, expiresAt: nil, score: score, &gone)
        }
    }

    /// Removes everything.
    package func removeAll() {
        change { state, gone in
            state.small.shrink(to: .init(count: 0), .removed, &gone)
            state.large.shrink(to: .init(count: 0), .removed, &gone)
        }
    }

    /// Evicts entries down to a cost, as under memory pressure; each budget gives its share.
    package func trim(cost target: Int) {
        change { state, gone in
            guard state.cost > target else { return }
            let small = Int(Double(state.small.cost) * Double(max(0, target)) / Double(state.cost))
            state.small.shrink(to: .init(cost: small), .pressure, &gone)
            state.large.shrink(to: .init(cost: target - small), .pressure, &gone)
        }
    }

    /// Changes the budgets; the excess is evicted at once.
    package func setBudgets(_ new: SizeBudgets) {
        change { state, gone in
            state.budgets = new
            let (small, large) = (min(state.small.cost, new.small), min(state.large.cost, new.large))
            state.small.setLimits(.init(cost: new.lends ? new.total - large : new.small), &gone)
            state.large.setLimits(.init(cost: new.lends ? new.total - small : new.large), &gone)
        }
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
