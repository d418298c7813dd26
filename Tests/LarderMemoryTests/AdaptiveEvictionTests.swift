import LarderTime
import TestSupport
import Testing

@testable import LarderMemory

/// The adaptive policy beside each of its rules.
@Suite("Adaptive eviction", .oneMinute)
struct AdaptiveEvictionTests {
    private static func hash(_ key: Int) -> UInt64 {
        KeyHash.fold(KeyHash.fold(UInt64(key) ^ 0x9E37_79B9_7F4A_7C15, 0xC2B2_AE3D_27D4_EB4F), 0xA076_1D64_78BD_642F)
    }

    /// One part, with the same hashes in each process.
    private static func tier(_ size: Int) -> MemoryTier<Int, Int> {
        MemoryTier(
            limits: .init(count: size),
            policy: .adaptive,
            clock: ManualClock(),
            shardBits: 0,
            hash: { key, _ in hash(key) },
            onDeparture: nil
        )
    }

    /// The hits of each rule alone.
    private static func hits(_ keys: [Int], _ size: Int) -> [EvictionOrder.Rule: Int] {
        var sketch = FrequencySketch()
        sketch.grow(to: 512)
        var shadows = ShadowTiers()
        var hits: [EvictionOrder.Rule: Int] = [:]
        for key in keys {
            let hash = UInt32(truncatingIfNeeded: hash(key))
            sketch.add(hash)
            let holders = shadows.use(hash, maximum: size, sketch)
            if holders.contains(.recency) { hits[.recency, default: 0] += 1 }
            if holders.contains(.quickDemotion) { hits[.quickDemotion, default: 0] += 1 }
            if holders.contains(.frequency) { hits[.frequency, default: 0] += 1 }
        }
        return hits
    }

    private static func hits(_ keys: [Int], _ tier: MemoryTier<Int, Int>) -> Int {
        var hits = 0
        for key in keys {
            if tier[key] != nil { hits += 1 } else { tier.store(key, for: key) }
        }
        return hits
    }

    enum Pattern: CaseIterable {
        /// A loop that is longer than the tier.
        case loop
        /// A window that moves on: old keys never return.
        case window
        /// Few keys are popular, and scans come in between.
        case popular
        /// Lists are read down and partly up again, with profiles by popularity.
        case session
        /// New keys are used some times soon after another.
        case bursts

        func keys(_ count: Int, _ generator: inout SeededGenerator) -> [Int] {
            var keys: [Int] = []
            func popular(_ range: Int) -> Int {
                // The square of the square makes small numbers frequent.
                let draw = Double(generator.uniform(in: 0..<10_000)) / 10_000
                return Int(draw * draw * draw * draw * Double(range))
            }
            var base = 1_000_000
            while keys.count < count {
                switch self {
                case .loop: keys.append(keys.count % 600)
                case .window:
                    base += 100
                    for _ in 0..<1_000 { keys.append(base + generator.uniform(in: 0..<300)) }
                case .popular:
                    for _ in 0..<1_500 { keys.append(popular(10_000)) }
                    base += 1_500
                    for key in base..<(base + 1_500) { keys.append(key) }
                case .session:
                    base += generator.uniform(in: 5..<40)
                    let depth = generator.uniform(in: 20..<400)
                    for offset in 0..<depth {
                        keys.append(base - offset)
                        if offset % 4 == 0 { keys.append(popular(2_000)) }
                    }
                    for offset in stride(from: depth - 1, through: 0, by: -3) { keys.append(base - offset) }
                case .bursts:
                    base += 1
                    for _ in 0..<3 { keys.append(base - generator.uniform(in: 0..<100)) }
                    keys.append(popular(5_000))
                }
            }
            return keys
        }
    }

    @Test(arguments: Pattern.allCases, [200, 500])
    func `the hit rate is close to that of the best rule`(_ pattern: Pattern, _ size: Int) {
        var generator = SeededGenerator(seed: 7)
        let keys = pattern.keys(40_000, &generator)
        let hits = Self.hits(keys, Self.tier(size))
        let alone = Self.hits(keys, size)
        #expect(hits >= (alone.values.max() ?? 0) - keys.count / 40, "\(hits) of \(keys.count); \(alone)")
    }

    @Test func `each rule is the best one for some pattern by more than a point`() {
        var best: Set<EvictionOrder.Rule> = []
        for pattern in Pattern.allCases {
            var generator = SeededGenerator(seed: 7)
            let sorted = Self.hits(pattern.keys(100_000, &generator), 200).sorted { $0.value > $1.value }
            if sorted.count == 1 || sorted[0].value > sorted[1].value + 1_000 { best.insert(sorted[0].key) }
        }
        #expect(best.count == 3, "\(best)")
    }

    @Test func `the rule follows a change of the pattern`() {
        var generator = SeededGenerator(seed: 9)
        let tier = Self.tier(500)
        for pattern in [Pattern.loop, .window, .loop, .session, .window] {
            let keys = pattern.keys(60_000, &generator)
            let (start, end) = (Array(keys.prefix(30_000)), Array(keys.dropFirst(30_000)))
            _ = Self.hits(start, tier)
            let hits = Self.hits(end, tier)
            let best = Self.hits(end, 500).values.max() ?? 0
            #expect(hits >= best - end.count / 50, "\(pattern): \(hits), \(best)")
        }
    }
}
