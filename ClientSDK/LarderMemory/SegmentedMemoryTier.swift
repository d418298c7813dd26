public import LarderTime
import Synchronization

/// Two memory tiers, for small and for large entries, that lend each other unused budget.
///
/// A few large values cannot evict a thousand small ones, and while one kind is unused the other may use both budgets. Lent budget
/// is returned when its owner needs it. Safe from any thread.
public final class SegmentedMemoryTier<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    /// The maximum cost of each kind.
    public struct Budgets: Sendable, Hashable {
        /// The budget of small entries.
        public var small: Int
        /// The budget of large entries.
        public var large: Int
        /// The least cost of a large entry.
        public var threshold: Int

        /// Creates budgets.
        public init(small: Int, large: Int, threshold: Int) {
            self.small = max(0, small)
            self.large = max(0, large)
            self.threshold = threshold
        }

        /// The sum of both budgets.
        public var total: Int {
            let (sum, overflow) = small.addingReportingOverflow(large)
            return overflow ? .max : sum
        }

        /// Both budgets times a share from 0 to 1; the threshold stays.
        func scaled(by share: Double) -> Budgets {
            guard share < 1 else { return self }
            return Budgets(
                small: Int(Double(small) * share),
                large: Int(Double(large) * share),
                threshold: threshold
            )
        }
    }

    /// The tier of small entries.
    public let small: MemoryTier<Key, Value>
    /// The tier of large entries.
    public let large: MemoryTier<Key, Value>
    /// The budgets without pressure.
    private let full: Budgets
    /// The current budgets. Locked while both tiers are changed, so that their sum is exact.
    private let current: Mutex<Budgets>
    private let score: (@Sendable (Key, Value, Int) -> Double)?
    private let onDeparture: (@Sendable (MemoryTier<Key, Value>.Departure) -> Void)?
    private let departed = Departed<Key, Value>()

    /// - Parameters:
    ///   - budgets: the budgets of both kinds.
    ///   - policy: selects the entry to evict; with a score always `greedyDual`.
    ///   - clock: used for lifetimes.
    ///   - onDeparture: called with every removed entry, while no lock is held.
    ///   - score: the value of an entry for its size, computed once when it is stored: the lowest leaves first
    ///     (`EvictionPolicy.greedyDual`).
    public init(
        _ budgets: Budgets,
        policy: EvictionPolicy = .adaptive,
        clock: any MonotonicClock = SystemMonotonicClock(),
        onDeparture: (@Sendable (MemoryTier<Key, Value>.Departure) -> Void)? = nil,
        score: (@Sendable (Key, Value, Int) -> Double)? = nil
    ) {
        full = budgets
        current = Mutex(budgets)
        self.score = score
        self.onDeparture = onDeparture
        let limits = MemoryTier<Key, Value>.Limits(cost: budgets.total)
        let policy = score == nil ? policy : .greedyDual
        var note: (@Sendable (MemoryTier<Key, Value>.Departure) -> Void)?
        if onDeparture != nil {
            let departed = departed
            note = { departed.add($0) }
        }
        small = MemoryTier(limits: limits, policy: policy, clock: clock, onDeparture: note)
        large = MemoryTier(limits: limits, policy: policy, clock: clock, onDeparture: note)
    }

    /// The value of a key; nil if there is none or its lifetime has ended.
    public subscript(key: Key) -> Value? {
        let value = small[key] ?? large[key]
        tell()
        return value
    }

    /// Like the subscript, but counts neither as a hit nor as a use.
    public func peek(_ key: Key) -> Value? { small.peek(key) ?? large.peek(key) }

    /// The sum of the costs of all entries.
    public var cost: Int { small.cost + large.cost }

    /// The budgets at the present share (`setShare`).
    public var budgets: Budgets { current.withLock { $0 } }

    /// Stores a value in the tier of its size; lent budget is returned first.
    public func store(_ value: Value, for key: Key, cost: Int, lifetime: Duration? = nil) {
        let score = score?(key, value, max(0, cost)) ?? 1
        current.withLock { budgets in
            let isLarge = cost >= budgets.threshold
            let (mine, other) = isLarge ? (large, small) : (small, large)
            let ownBudget = isLarge ? budgets.large : budgets.small
            other.remove(key)
            // Beyond its own budget a kind may use what the other leaves unused; up to its budget, the other must give back.
            let total = budgets.total
            let (sum, overflow) = mine.cost.addingReportingOverflow(max(0, cost))
            let wanted = min(overflow ? .max : sum, ownBudget)
            if other.cost > total - wanted { other.trim(cost: total - wanted) }
            mine.setLimits(.init(cost: max(ownBudget, total - other.cost)))
            mine.store(value, for: key, cost: cost, lifetime: lifetime, score: score)
        }
        tell()
    }

    /// Removes a value; returns it if it was there.
    @discardableResult public func remove(_ key: Key) -> Value? {
        let value = small.remove(key) ?? large.remove(key)
        tell()
        return value
    }

    /// Removes everything.
    public func removeAll() {
        small.removeAll()
        large.removeAll()
        tell()
    }

    // MARK: Room

    /// Limits both kinds to a share of their budgets until the next call, from 0, which stores nothing, to 1. The excess is evicted
    /// at once, and the kinds go on lending each other unused budget.
    public func setShare(_ share: Double) {
        let budgets = full.scaled(by: share.isNaN ? 1 : min(max(share, 0), 1))
        current.withLock { current in
            current = budgets
            apply(budgets)
        }
        tell()
    }

    private func apply(_ budgets: Budgets) {
        let total = budgets.total
        let (smallCost, largeCost) = (small.cost, large.cost)
        // A kind that exceeds its budget shrinks, except for what the other leaves unused.
        let smallMaximum = max(budgets.small, total - min(total, largeCost))
        let largeMaximum = max(budgets.large, total - min(total, smallCost))
        small.trim(toCount: smallMaximum == 0 ? 0 : .max, cost: smallMaximum, .pressure)
        large.trim(toCount: largeMaximum == 0 ? 0 : .max, cost: largeMaximum, .pressure)
        small.setLimits(.init(cost: max(budgets.small, total - min(total, large.cost))))
        large.setLimits(.init(cost: max(budgets.large, total - min(total, small.cost))))
    }

    /// Evicts entries of each kind once until a share of their cost is left.
    ///
    /// - Parameter share: from 0 to 1.
    public func trim(toShare share: Double) {
        let share = min(max(share, 0), 1)
        small.trim(cost: Int(Double(small.cost) * share))
        large.trim(cost: Int(Double(large.cost) * share))
        tell()
    }

    /// Reports removed entries, while no lock is held.
    private func tell() {
        guard let onDeparture, departed.isFilled else { return }
        for departure in departed.take() { onDeparture(departure) }
    }
}

/// Removed entries that are to be reported. Safe from any thread.
private final class Departed<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private let list = Mutex<[MemoryTier<Key, Value>.Departure]>([])
    /// Lets a hit skip the lock.
    private let count = Atomic<Int>(0)

    var isFilled: Bool { count.load(ordering: .acquiring) > 0 }

    func add(_ departure: MemoryTier<Key, Value>.Departure) {
        list.withLock { list in
            list.append(departure)
            count.store(list.count, ordering: .releasing)
        }
    }

    func take() -> [MemoryTier<Key, Value>.Departure] {
        list.withLock { list in
            defer { list = [] }
            count.store(0, ordering: .releasing)
            return list
        }
    }
}
