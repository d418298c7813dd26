public import LarderTime

/// Entries under one limit of count and cost. A value without a lock.
///
/// Entries that leave are added to `gone`, for the owner to release and report after its lock. A hit is inlinable, so that the compiler
/// of a user's module specialises it.
@usableFromInline struct MemoryEntries<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    @usableFromInline typealias Tier = MemoryTier<Key, Value>

    @usableFromInline struct Entry: Sendable {
        @usableFromInline let key: Key
        @usableFromInline let value: Value
        @usableFromInline let cost: Int
        /// The end of its lifetime; nil for none.
        @usableFromInline let expiresAt: MonotonicTime?
    }

    @usableFromInline var slots: [Key: Int] = [:]
    /// The entries by slot; nil for free slots.
    @usableFromInline var entries: [Entry?] = []
    private var free: [Int] = []
    @usableFromInline var order: EvictionOrder
    private(set) var limits: Tier.Limits
    private(set) var cost = 0
    @usableFromInline var statistics = Tier.Statistics()

    init(_ limits: Tier.Limits, _ policy: EvictionPolicy) {
        self.limits = limits
        order = EvictionOrder(policy)
    }

    /// The value of a key whose lifetime has not ended.
    @inlinable func peek(_ key: Key, _ clock: any MonotonicClock) -> Value? {
        guard let slot = slots[key], let entry = entries[slot] else { return nil }
        if let end = entry.expiresAt, clock.uptime >= end { return nil }
        return entry.value
    }

    /// The same, counted as a use. An entry whose lifetime has ended is removed.
    @inlinable mutating func use(_ key: Key, _ clock: any MonotonicClock, _ gone: inout [Tier.Departure]) -> Value? {
        guard let slot = slots[key], let entry = entries[slot] else {
            statistics.misses += 1
            return nil
        }
        if let end = entry.expiresAt, clock.uptime >= end {
            statistics.misses += 1
            remove(slot, .expired, &gone)
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
        expiresAt: MonotonicTime?,
        score: Double,
        _ gone: inout [Tier.Departure]
    ) {
        if let slot = slots[key] { remove(slot, .replaced, &gone) }
        guard limits.count > 0, limits.cost > 0, cost <= limits.cost else { return }
        shrink(to: Tier.Limits(count: limits.count - 1, cost: limits.cost - cost), nil, &gone)
        let slot = free.popLast() ?? entries.count
        if slot == entries.count { entries.append(nil) }
        entries[slot] = Entry(key: key, value: value, cost: cost, expiresAt: expiresAt)
        slots[key] = slot
        order.insert(slot, score: score)
        self.cost += cost
        statistics.stores += 1
    }

    mutating func setLimits(_ new: Tier.Limits, _ gone: inout [Tier.Departure]) {
        limits = new
        shrink(to: new, .cost, &gone)
    }

    /// Evicts entries until the rest is within limits.
    ///
    /// - Parameter reason: nil for the limit that is exceeded.
    mutating func shrink(to target: Tier.Limits, _ reason: Tier.Reason?, _ gone: inout [Tier.Departure]) {
        while slots.count > target.count || cost > target.cost, let slot = order.victim() {
            remove(slot, reason ?? (slots.count > target.count ? .count : .cost), &gone)
        }
    }

    mutating func removeExpired(at now: MonotonicTime, _ gone: inout [Tier.Departure]) {
        for slot in entries.indices {
            if let end = entries[slot]?.expiresAt, now >= end { remove(slot, .expired, &gone) }
        }
    }

    @usableFromInline mutating func remove(_ slot: Int, _ reason: Tier.Reason, _ gone: inout [Tier.Departure]) {
        guard let entry = entries[slot] else { return }
        entries[slot] = nil
        slots[entry.key] = nil
        free.append(slot)
        order.remove(slot)
        cost -= entry.cost
        statistics.departures[reason, default: 0] += 1
        gone.append(Tier.Departure(key: entry.key, value: entry.value, cost: entry.cost, reason: reason))
    }
}
