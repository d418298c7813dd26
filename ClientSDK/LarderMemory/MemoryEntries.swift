/// Entries under limits of count and cost. A value without a lock.
///
/// Entries that leave are added to `gone`, for the owner to release and report after its lock. A hit is inlinable, so that the compiler
/// of a user's module specialises it.
@usableFromInline struct MemoryEntries<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    @usableFromInline typealias Tier = MemoryTier<Key, Value>

    @usableFromInline struct Entry: Sendable {
        let key: Key
        @usableFromInline let value: Value
        let cost: Int
    }

    @usableFromInline var slots: [Key: Int] = [:]
    /// The entries by slot; nil for free slots.
    @usableFromInline var entries: [Entry?] = []
    private var free: [Int] = []
    @usableFromInline var order = EvictionOrder()
    /// The sum of the costs of all entries.
    private(set) var cost = 0
    private var limits: Tier.Limits
    @usableFromInline var statistics = Tier.Statistics()

    init(_ limits: Tier.Limits) { self.limits = limits }

    func peek(_ key: Key) -> Value? { slots[key].flatMap { entries[$0]?.value } }

    /// The value of a key, counted as a use.
    @inlinable mutating func use(_ key: Key) -> Value? {
        guard let slot = slots[key], let entry = entries[slot] else {
            statistics.misses += 1
            return nil
        }
        statistics.hits += 1
        order.touch(slot)
        return entry.value
    }

    /// Stores a value in place of the one with the same key, and makes room for it. One that costs more than the limit is not stored.
    mutating func store(
        _ value: Value,
        for key: Key,
        cost: Int,
        score: Double,
        _ gone: inout [Tier.Departure]
    ) {
        if let slot = slots[key] { remove(slot, .replaced, &gone) }
        guard limits.count > 0, limits.cost > 0, cost <= limits.cost else { return }
        trim(to: Tier.Limits(count: limits.count - 1, cost: limits.cost - cost), nil, &gone)
        let slot = free.popLast() ?? entries.count
        if slot == entries.count { entries.append(nil) }
        entries[slot] = Entry(key: key, value: value, cost: cost)
        slots[key] = slot
        order.insert(slot, score: score)
        self.cost += cost
    }

    mutating func setLimits(_ new: Tier.Limits, _ reason: Tier.Reason?, _ gone: inout [Tier.Departure]) {
        limits = new
        trim(to: new, reason, &gone)
    }

    /// Evicts entries until the rest is within limits.
    ///
    /// - Parameter reason: nil for the limit that is exceeded.
    mutating func trim(to target: Tier.Limits, _ reason: Tier.Reason?, _ gone: inout [Tier.Departure]) {
        while slots.count > target.count || cost > target.cost, let slot = order.victim() {
            remove(slot, reason ?? (slots.count > target.count ? .count : .cost), &gone)
        }
    }

    mutating func remove(_ slot: Int, _ reason: Tier.Reason, _ gone: inout [Tier.Departure]) {
        guard let entry = entries[slot] else { return }
        entries[slot] = nil
        slots[entry.key] = nil
        free.append(slot)
        order.remove(slot)
        cost -= entry.cost
        gone.append(Tier.Departure(key: entry.key, value: entry.value, cost: entry.cost, reason: reason))
    }
}
