/// Entries under limits of count and cost, with one budget for all of them or one for each size. A value without a lock.
///
/// Entries that leave are added to `gone`, for the owner to release and report after its lock. A hit is inlinable, so that the compiler
/// of a user's module specialises it.
@usableFromInline struct MemoryEntries<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    @usableFromInline typealias Tier = MemoryTier<Key, Value>

    @usableFromInline struct Entry: Sendable {
        let key: Key
        @usableFromInline let value: Value
        let cost: Int
        /// The index of its part.
        @usableFromInline let part: Int
    }

    /// The entries of one size.
    @usableFromInline struct Part: Sendable {
        @usableFromInline var order: EvictionOrder
        var cost = 0
    }

    @usableFromInline var slots: [Key: Int] = [:]
    /// The entries by slot; nil for free slots.
    @usableFromInline var entries: [Entry?] = []
    private var free: [Int] = []
    /// The small entries, of which there are none with one budget, and the large ones.
    @usableFromInline var parts: [Part]
    private var budgets: SizeBudgets
    private var countMaximum: Int
    @usableFromInline var statistics = Tier.Statistics()

    init(_ budgets: SizeBudgets, _ countMaximum: Int, _ policy: EvictionPolicy) {
        (self.budgets, self.countMaximum) = (budgets, countMaximum)
        parts = [Part(order: EvictionOrder(policy)), Part(order: EvictionOrder(policy))]
    }

    var cost: Int { parts[0].cost + parts[1].cost }

    func peek(_ key: Key) -> Value? { slots[key].flatMap { entries[$0]?.value } }

    /// The value of a key, counted as a use.
    @inlinable mutating func use(_ key: Key) -> Value? {
        guard let slot = slots[key], let entry = entries[slot] else {
            statistics.misses += 1
            return nil
        }
        statistics.hits += 1
        parts[entry.part].order.touch(slot)
        return entry.value
    }

    /// Stores a value in place of the one with the same key, and makes room for it. One that costs more than the budget of its size, with
    /// lending also more than what the other leaves free, is not stored.
    mutating func store(
        _ value: Value,
        for key: Key,
        cost: Int,
        score: Double,
        _ gone: inout [Tier.Departure]
    ) {
        if let slot = slots[key] { remove(slot, .replaced, &gone) }
        let part = cost > budgets.threshold ? 1 : 0
        var budget = part == 1 ? budgets.large : budgets.small
        if budgets.lends {
            // The other part gives back what it has borrowed and this one may have; then this one may use what the other leaves.
            let needed = min(budget, parts[part].cost + cost)
            shrink(1 - part, Tier.Limits(cost: budgets.total - needed), nil, &gone)
            budget = budgets.total - parts[1 - part].cost
        }
        guard countMaximum > 0, budget > 0, cost <= budget else { return }
        shrink(part, Tier.Limits(count: countMaximum - 1, cost: budget - cost), nil, &gone)
        let slot = free.popLast() ?? entries.count
        if slot == entries.count { entries.append(nil) }
        entries[slot] = Entry(key: key, value: value, cost: cost, part: part)
        slots[key] = slot
        parts[part].order.insert(slot, score: score)
        parts[part].cost += cost
    }

    mutating func setBudgets(
        _ new: SizeBudgets,
        _ countMaximum: Int,
        _ reason: Tier.Reason?,
        _ gone: inout [Tier.Departure]
    ) {
        (budgets, self.countMaximum) = (new, countMaximum)
        let (small, large) = (min(parts[0].cost, new.small), min(parts[1].cost, new.large))
        let limits = new.lends ? [new.total - large, new.total - small] : [new.small, new.large]
        for part in 0...1 { shrink(part, Tier.Limits(count: countMaximum, cost: limits[part]), reason, &gone) }
    }

    /// Evicts entries until the rest is within limits; each part gives its share of the cost.
    mutating func trim(to target: Tier.Limits, _ reason: Tier.Reason, _ gone: inout [Tier.Departure]) {
        var small = parts[0].cost
        if cost > target.cost { small = Int(Double(small) * Double(target.cost) / Double(cost)) }
        shrink(0, Tier.Limits(count: target.count, cost: small), reason, &gone)
        shrink(1, Tier.Limits(count: target.count, cost: target.cost - small), reason, &gone)
    }

    /// Evicts entries of a part until all are within the limit of count, and the part is within that of cost.
    ///
    /// - Parameter reason: nil for the limit that is exceeded.
    private mutating func shrink(
        _ part: Int,
        _ target: Tier.Limits,
        _ reason: Tier.Reason?,
        _ gone: inout [Tier.Departure]
    ) {
        while slots.count > target.count || parts[part].cost > target.cost, let slot = parts[part].order.victim() {
            remove(slot, reason ?? (slots.count > target.count ? .count : .cost), &gone)
        }
    }

    mutating func remove(_ slot: Int, _ reason: Tier.Reason, _ gone: inout [Tier.Departure]) {
        guard let entry = entries[slot] else { return }
        entries[slot] = nil
        slots[entry.key] = nil
        free.append(slot)
        parts[entry.part].order.remove(slot)
        parts[entry.part].cost -= entry.cost
        gone.append(Tier.Departure(key: entry.key, value: entry.value, cost: entry.cost, reason: reason))
    }
}
