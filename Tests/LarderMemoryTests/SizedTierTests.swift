import LarderTime
import Synchronization
import TestSupport
import Testing

@testable import LarderMemory

@Suite("Memory tier, budgets by size", .oneMinute)
struct SizedTierTests {
    /// Up to 10 is small; 100 for small entries, 1,000 for large ones.
    private static func tier(lends: Bool) -> MemoryTier<Int, Int> {
        MemoryTier(SizeBudgets(threshold: 10, small: 100, large: 1_000, lends: lends), policy: .lru)
    }

    private func kept(_ tier: MemoryTier<Int, Int>, _ keys: Range<Int>) -> Int {
        keys.filter { tier.peek($0) != nil }.count
    }

    @Test func `a full small budget evicts nothing large, and a full large budget nothing small`() {
        for lends in [false, true] {
            let tier = Self.tier(lends: lends)
            for key in 0..<10 { tier.store(key, for: key, cost: 100) }
            for key in 100..<120 { tier.store(key, for: key, cost: 10) }
            #expect(kept(tier, 0..<10) == 10 && kept(tier, 100..<120) == 10, "lends: \(lends)")
            for key in 10..<30 { tier.store(key, for: key, cost: 100) }
            #expect(kept(tier, 0..<30) == 10 && kept(tier, 100..<120) == 10, "lends: \(lends)")
            #expect(tier.cost == 1_100)
        }
    }

    @Test func `with lending, entries of one size use what the other leaves free, and give it back`() {
        let tier = Self.tier(lends: true)
        for key in 0..<20 { tier.store(key, for: key, cost: 100) }
        #expect(kept(tier, 0..<20) == 11, "1,000 and the 100 of the small ones.")
        tier.store(100, for: 100, cost: 10)
        #expect(kept(tier, 0..<20) == 10 && tier[100] != nil)
        let small = Self.tier(lends: true)
        for key in 100..<210 { small.store(key, for: key, cost: 10) }
        #expect(small.cost == 1_100)
        for key in 0..<10 { small.store(key, for: key, cost: 100) }
        #expect(kept(small, 0..<10) == 10 && kept(small, 200..<210) == 10)
        let strict = Self.tier(lends: false)
        for key in 100..<210 { strict.store(key, for: key, cost: 10) }
        #expect(strict.cost == 100)
    }

    @Test func `the sum is within both budgets, and every entry is kept or reported`() {
        for seed in UInt64(1)...20 {
            var generator = SeededGenerator(seed: seed)
            let gone = Mutex<[Int: Int]>([:])
            let budgets = SizeBudgets(threshold: 20, small: 200, large: 800, lends: seed % 2 == 0)
            let tier = MemoryTier<Int, Int>(budgets, policy: .greedyDual) { departure in
                gone.withLock { $0[departure.value, default: 0] += 1 }
            }
            for step in 0..<1_000 {
                let key = generator.uniform(in: 0..<60)
                let cost = generator.uniform(in: 1..<(generator.uniform(in: 0..<2) == 0 ? 20 : 200))
                switch generator.uniform(in: 0..<40) {
                case 0: tier.trim(cost: tier.cost / 2)
                case 1: tier.setBudgets(SizeBudgets(threshold: 20, small: 100, large: 400, lends: budgets.lends))
                case 2: tier.setBudgets(budgets)
                default:
                    tier.store(step, for: key, cost: cost)
                    if tier.peek(key) != step { gone.withLock { $0[step, default: 0] += 1 } }
                }
                if tier.cost > 1_000 { Issue.record("seed \(seed), step \(step): \(tier.cost)") }
            }
            let kept = Set(tier.keys.compactMap { tier.peek($0) })
            #expect(tier.keys.count == kept.count && gone.withLock { $0.values.allSatisfy { $0 == 1 } }, "seed \(seed)")
            #expect(gone.withLock { kept.isDisjoint(with: $0.keys) }, "seed \(seed)")
        }
    }

    @Test(arguments: [false, true])
    func `with concurrent threads the budgets hold, and every entry is kept or reported once`(lends: Bool) async {
        let gone = Mutex<[Int: Int]>([:])
        let tier = MemoryTier<Int, Int>(
            SizeBudgets(threshold: 20, small: 2_000, large: 8_000, lends: lends),
            policy: .lru
        ) { departure in
            gone.withLock { $0[departure.value, default: 0] += 1 }
        }
        await withTaskGroup(of: Void.self) { group in
            for task in 0..<4 {
                group.addTask {
                    var generator = SeededGenerator(seed: UInt64(task))
                    // Each thread has its keys and values, and all share the budgets.
                    for step in 0..<5_000 {
                        let value = task * 1_000_000 + step
                        let cost = generator.uniform(in: 1..<(step % 2 == 0 ? 20 : 200))
                        tier.store(value, for: task * 1_000 + generator.uniform(in: 0..<300), cost: cost)
                        if tier.cost > 10_000 { Issue.record("\(tier.cost)") }
                    }
                }
            }
        }
        let kept = Set(tier.keys.compactMap { tier.peek($0) })
        #expect(kept.count == tier.keys.count && tier.cost <= 10_000 && !kept.isEmpty)
        #expect(gone.withLock { $0.values.allSatisfy { $0 == 1 } && kept.isDisjoint(with: $0.keys) })
        #expect(gone.withLock { $0.count } + kept.count == 20_000)
    }

    @Test func `one budget is one order for all sizes`() {
        let tier = MemoryTier<Int, Int>(.one(100), policy: .lru)
        tier.store(1, for: 1, cost: 60)
        tier.store(2, for: 2, cost: 1)
        tier.store(3, for: 3, cost: 60)
        #expect(tier.peek(1) == nil && tier[2] == 2 && tier[3] == 3)
        tier.setBudgets(.one(50))
        #expect(tier.cost <= 50)
    }
}
