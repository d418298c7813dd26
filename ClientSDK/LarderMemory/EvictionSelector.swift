/// Selects the eviction rule that would have had the most hits lately.
///
/// Shadow tiers, one for each rule, see a sample of the uses. After as many sampled uses as a shadow tier has entries the hits are
/// compared, and older ones lose a fourteenth of their weight. While a tier evicts nothing, no rule is better, and nothing is sampled.
struct EvictionSelector: ~Copyable {
    /// The number of entries of a shadow tier is between this and its double, unless the tier is smaller.
    private static let shadowMinimum = 32
    /// The share of the sampled uses that another rule must have had as additional hits.
    private static let margin = 0.005
    private static let decay = 0.93
    /// The number of uses for each entry that are sampled after an eviction.
    private static let usesAfterEviction = 8

    private var shadows = ShadowTiers()
    private var hits: (recency: Double, quickDemotion: Double, frequency: Double) = (0, 0, 0)
    private var uses = 0.0
    private var usesSinceChoice = 0
    /// The number of uses before sampling ends.
    private var usesLeft = 0
    /// The sampled share of the hashes is one divided by this plus one.
    private var mask: UInt32 = 0

    /// Adapts the sample to a number of slots, which must be a power of two.
    mutating func grow(to capacity: Int) {
        let mask = UInt32(min(4_096, max(1, capacity / (2 * Self.shadowMinimum))) - 1)
        guard mask != self.mask else { return }
        self.mask = mask
        shadows = ShadowTiers()
    }

    /// Notes an eviction from a tier with a number of entries.
    @inline(__always) mutating func evicted(count: Int) { usesLeft = Self.usesAfterEviction * count }

    /// Whether the use of a key is to be counted. Uses other bits than the tables do to place the key.
    @inline(__always) mutating func samples(_ hash: UInt32) -> Bool {
        guard usesLeft > 0 else { return false }
        usesLeft -= 1
        return (hash >> 20) & mask == 0
    }

    /// Counts a use of a sampled key.
    ///
    /// - Parameter count: the number of entries of the tier.
    /// - Returns: the best rule, if it is time to choose.
    mutating func use(
        _ hash: UInt32,
        count: Int,
        _ rule: EvictionOrder.Rule,
        _ sketch: borrowing FrequencySketch
    ) -> EvictionOrder.Rule? {
        let maximum = max(1, count / Int(mask + 1))
        let holders = shadows.use(hash, maximum: maximum, sketch)
        if holders.contains(.recency) { hits.recency += 1 }
        if holders.contains(.quickDemotion) { hits.quickDemotion += 1 }
        if holders.contains(.frequency) { hits.frequency += 1 }
        uses += 1
        usesSinceChoice += 1
        guard usesSinceChoice >= max(16, maximum) else { return nil }
        usesSinceChoice = 0
        let best = best(rule)
        hits = (hits.recency * Self.decay, hits.quickDemotion * Self.decay, hits.frequency * Self.decay)
        uses *= Self.decay
        return best
    }

    private func best(_ current: EvictionOrder.Rule) -> EvictionOrder.Rule {
        var best = (rule: current, hits: hits(current) + Self.margin * uses)
        for rule in EvictionOrder.Rule.allCases where hits(rule) > best.hits { best = (rule, hits(rule)) }
        return best.rule
    }

    private func hits(_ rule: EvictionOrder.Rule) -> Double {
        switch rule {
        case .recency: hits.recency
        case .quickDemotion: hits.quickDemotion
        case .frequency: hits.frequency
        }
    }
}
