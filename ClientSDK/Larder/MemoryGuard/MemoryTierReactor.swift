/// Shrinks a memory tier under pressure, and lets it grow again afterwards. Its limits belong to the guard from then on.
public struct MemoryTierReactor<Key: Hashable & Sendable, Value: Sendable>: MemoryReactor {
    /// What it is called in reports.
    public let name: String
    private let tier: MemoryTier<Key, Value>
    private let full: MemoryTier<Key, Value>.Limits

    /// - Parameters:
    ///   - full: what the tier may hold without pressure. Where costs are limited they are what shrinks, otherwise the count.
    public init(_ name: String, _ tier: MemoryTier<Key, Value>, full: MemoryTier<Key, Value>.Limits) {
        self.name = name
        self.tier = tier
        self.full = full
    }

    /// A tier does no work.
    public func stopWork(for posture: MemoryPosture) -> Int { 0 }

    /// Trims the tier and holds it there.
    public func releaseMemory(for posture: MemoryPosture) -> Int {
        let before = tier.cost
        var limits = full
        limits.cost = posture.limit(full.cost)
        if full.cost == .max || limits.cost == 0 { limits.count = posture.limit(full.count) }
        // Trimmed first, so that what leaves is told of as having left for pressure.
        tier.trim(toCount: limits.count, cost: limits.cost)
        tier.setLimits(limits)
        return max(0, before - tier.cost)
    }
}

/// Holds a segmented memory tier at its share under pressure, and gives it back its budgets step by step.
public struct SegmentedMemoryTierReactor<Key: Hashable & Sendable, Value: Sendable>: MemoryReactor {
    /// What it is called in reports.
    public let name: String
    private let tier: SegmentedMemoryTier<Key, Value>

    /// A tier whose share is the guard's from then on.
    public init(_ name: String, _ tier: SegmentedMemoryTier<Key, Value>) {
        self.name = name
        self.tier = tier
    }

    /// A tier does no work.
    public func stopWork(for posture: MemoryPosture) -> Int { 0 }

    /// Holds the tier at its share.
    public func releaseMemory(for posture: MemoryPosture) -> Int {
        let before = tier.cost
        tier.setShare(posture.cacheShare)
        return max(0, before - tier.cost)
    }
}
