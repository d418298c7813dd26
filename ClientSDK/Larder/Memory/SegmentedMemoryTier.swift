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

        /// What both may cost together.
        public var total: Int {
            let (sum, overflow) = small.addingReportingOverflow(large)
            return overflow ? .max : sum
        }

        /// A share of both, from 0 to 1; what counts as large stays.
        func scaled(by share: Double) -> Budgets {
            guard share < 1 else { return self }
            return Budgets(
                small: Int(Double(small) * share),
                large: Int(Double(large) * share),
                threshold: threshold
            )
        }
    }

    private struct State {
        /// What there may be without pressure.
        var full: Budgets
        var share = 1.0
        var now: Budgets
    }

    /// What is kept of small entries.
    public let small: MemoryTier<Key, Value>
    /// What is kept of large ones.
    public let large: MemoryTier<Key, Value>
    /// Held while both tiers are changed, so that their sum is right.
    private let state: Mutex<State>
    private let score: (@Sendable (Key, Value, Int) -> Double)?
    private let onDeparture: (@Sendable (MemoryTier<Key, Value>.Departure) -> Void)?
    private let departed = Departed<Key, Value>()

    /// - Parameters:
    ///   - budgets: how much there may be.
    ///   - policy: who leaves when it is full; where there is a score, `greedyDual`, whatever is said here.
    ///   - clock: what lifetimes are measured by.
    ///   - onDeparture: told of every entry that leaves, after it has left and outside of all locks.
    ///   - score: what an entry of that cost is worth for its size, called once when it is stored: what was cheap to get and is
    ///     large leaves first (`EvictionPolicy.greedyDual`).
    public init(
        _ budgets: Budgets,
        policy: EvictionPolicy = .standard,
        clock: any MonotonicClock = SystemMonotonicClock(),
        onDeparture: (@Sendable (MemoryTier<Key, Value>.Departure) -> Void)? = nil,
        score: (@Sendable (Key, Value, Int) -> Double)? = nil
    ) {
        state = Mutex(State(full: budgets, now: budgets))
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

    /// The value of a key, if it is there and may still be used.
    public subscript(key: Key) -> Value? {
        let value = small[key] ?? large[key]
        tell()
        return value
    }

    /// The value of a key as the subscript gives it, but reading it so counts for nothing: neither as a hit nor for staying.
    public func peek(_ key: Key) -> Value? { small.peek(key) ?? large.peek(key) }

    /// The sum of the costs of what is there.
    public var cost: Int { small.cost + large.cost }

    /// How much there may be now.
    public var budgets: Budgets { state.withLock { $0.now } }

    /// Keeps a value among those of its size; what is lent is given back first.
    public func store(_ value: Value, for key: Key, cost: Int, lifetime: Duration? = nil) {
        let score = score?(key, value, max(0, cost)) ?? 1
        state.withLock { state in
            let budgets = state.now
            let isLarge = cost >= budgets.threshold
            let (mine, other) = isLarge ? (large, small) : (small, large)
            let ownBudget = isLarge ? budgets.large : budgets.small
            other.remove(key)
            // Beyond its own budget a kind may use what the other leaves idle; up to it, the other must give back.
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

    /// Changes what there may be without pressure, of both kinds at once. What is too much leaves now, first of the kind that
    /// has more than its own; a share that is in force (`setShare`) applies to the new budgets. What is there stays in the
    /// kind that it was stored as.
    public func setBudgets(_ budgets: Budgets) {
        state.withLock { state in
            state.full = budgets
            apply(&state, .cost)
        }
        tell()
    }

    /// Holds both kinds at a share of their budgets until the next call, from 0, which keeps nothing, to 1. As under pressure:
    /// what is too much leaves now, and they lend each other what is left.
    public func setShare(_ share: Double) {
        state.withLock { state in
            state.share = share.isNaN ? 1 : min(max(share, 0), 1)
            apply(&state, .pressure)
        }
        tell()
    }

    private func apply(_ state: inout State, _ reason: MemoryTier<Key, Value>.Reason) {
        state.now = state.full.scaled(by: state.share)
        let (budgets, total) = (state.now, state.now.total)
        let (smallCost, largeCost) = (small.cost, large.cost)
        // Whoever has more than its own gives, and keeps what the other leaves idle.
        let smallMaximum = max(budgets.small, total - min(total, largeCost))
        let largeMaximum = max(budgets.large, total - min(total, smallCost))
        small.trim(toCount: smallMaximum == 0 ? 0 : .max, cost: smallMaximum, reason)
        large.trim(toCount: largeMaximum == 0 ? 0 : .max, cost: largeMaximum, reason)
        small.setLimits(.init(cost: max(budgets.small, total - min(total, large.cost))))
        large.setLimits(.init(cost: max(budgets.large, total - min(total, small.cost))))
    }

    /// Keeps the given share of what there is of each kind, once: it may grow again at once.
    ///
    /// - Parameter share: from 0 to 1.
    public func trim(toShare share: Double) {
        let share = min(max(share, 0), 1)
        small.trim(cost: Int(Double(small.cost) * share))
        large.trim(cost: Int(Double(large.cost) * share))
        tell()
    }

    /// Tells of what has left, outside of the lock.
    private func tell() {
        guard let onDeparture, departed.isFilled else { return }
        for departure in departed.take() { onDeparture(departure) }
    }
}

/// Departures on their way to whoever is told of them. Safe from any thread.
private final class Departed<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private let list = Mutex<[MemoryTier<Key, Value>.Departure]>([])
    /// So that a hit takes no lock for it.
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
