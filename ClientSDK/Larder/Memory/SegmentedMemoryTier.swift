public import LarderTime
import Synchronization

/// Two memory tiers, for small entries and for large ones, that lend each other what they do not use.
///
/// A few large values cannot drive out a thousand small ones, and while one kind is not used the other may have it all. What
/// was lent is given back when its owner needs it. Safe from any thread.
public final class SegmentedMemoryTier<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    /// The sums of costs that belong to each kind.
    public struct Budgets: Sendable, Hashable {
        /// What belongs to small entries.
        public var small: Int
        /// What belongs to large ones.
        public var large: Int
        /// The least cost of a large entry.
        public var threshold: Int

        /// Budgets and where one kind ends and the other begins.
        public init(small: Int, large: Int, threshold: Int) {
            self.small = max(0, small)
            self.large = max(0, large)
            self.threshold = threshold
        }
    }

    /// What is kept of small entries.
    public let small: MemoryTier<Key, Value>
    /// What is kept of large ones.
    public let large: MemoryTier<Key, Value>
    private let budgets: Budgets
    /// Held while both tiers are changed, so that their sum is right.
    private let balance = Mutex(())

    /// - Parameter onDeparture: told of every entry that leaves; it must not call back into this tier.
    public init(
        _ budgets: Budgets,
        policy: EvictionPolicy = .standard,
        clock: any MonotonicClock = SystemMonotonicClock(),
        onDeparture: (@Sendable (MemoryTier<Key, Value>.Departure) -> Void)? = nil
    ) {
        self.budgets = budgets
        let (all, overflow) = budgets.small.addingReportingOverflow(budgets.large)
        let limits = MemoryTier<Key, Value>.Limits(cost: overflow ? .max : all)
        small = MemoryTier(limits: limits, policy: policy, clock: clock, onDeparture: onDeparture)
        large = MemoryTier(limits: limits, policy: policy, clock: clock, onDeparture: onDeparture)
    }

    /// The value of a key, if it is there and may still be used.
    public subscript(key: Key) -> Value? { small[key] ?? large[key] }

    /// The sum of the costs of what is there.
    public var cost: Int { small.cost + large.cost }

    /// Keeps a value among those of its size; what is lent is given back first.
    public func store(_ value: Value, for key: Key, cost: Int, lifetime: Duration? = nil) {
        balance.withLock { _ in
            let isLarge = cost >= budgets.threshold
            let (mine, other) = isLarge ? (large, small) : (small, large)
            let (ownBudget, otherBudget) = isLarge ? (budgets.large, budgets.small) : (budgets.small, budgets.large)
            _ = other.remove(key)
            // Beyond its own budget a kind may use what the other leaves idle; up to it, the other must give back.
            let total = ownBudget + otherBudget
            let wanted = min(mine.cost + max(0, cost), ownBudget)
            if other.cost > total - wanted { other.trim(cost: total - wanted) }
            mine.setLimits(.init(cost: max(ownBudget, total - other.cost)))
            mine.store(value, for: key, cost: cost, lifetime: lifetime)
        }
    }

    /// Removes a value; returns it if it was there.
    @discardableResult public func remove(_ key: Key) -> Value? { small.remove(key) ?? large.remove(key) }

    /// Removes everything.
    public func removeAll() {
        small.removeAll()
        large.removeAll()
    }

    /// Keeps the given share of each kind, as when memory is short.
    ///
    /// - Parameter share: from 0 to 1.
    public func trim(toShare share: Double) {
        let share = min(max(share, 0), 1)
        small.trim(cost: Int(Double(small.cost) * share))
        large.trim(cost: Int(Double(large.cost) * share))
    }
}
