import LarderMemory
import LarderTime
import Synchronization
import TestSupport
import Testing

@Suite("Memory tier", .oneMinute)
struct MemoryTierTests {
    @Test(arguments: [false, true])
    func `limits hold and a hit returns the last stored value, for random operations`(hasScores: Bool) {
        for seed in UInt64(1)...20 {
            var generator = SeededGenerator(seed: seed)
            let limits = MemoryTier<Int, Int>.Limits(
                count: generator.uniform(in: 1..<40),
                cost: generator.uniform(in: 1..<200)
            )
            let gone = Mutex<[Int: Int]>([:])
            let tier = MemoryTier<Int, Int>(limits: limits) { departure in
                gone.withLock { $0[departure.key, default: 0] += departure.cost }
            }
            var model: [Int: Int] = [:]
            for step in 0..<2_000 {
                let key = generator.uniform(in: 0..<80)
                switch generator.uniform(in: 0..<10) {
                case 0..<5:
                    let cost = generator.uniform(in: 0..<30)
                    let score = hasScores ? Double(generator.uniform(in: 1..<1_000)) : 1
                    tier.store(step, for: key, cost: cost, score: score)
                    model[key] = cost <= limits.cost ? step : nil
                case 5..<9:
                    if let value = tier[key] {
                        #expect(model[key] == value, "seed \(seed), step \(step)")
                    } else if model[key] != nil {
                        #expect(gone.withLock { $0[key] != nil }, "seed \(seed), step \(step): it left without a word")
                    }
                default:
                    tier.remove(key)
                    model[key] = nil
                }
                #expect(tier.count <= limits.count && tier.cost <= limits.cost, "seed \(seed), step \(step)")
            }
            tier.removeAll()
            #expect(tier.count == 0 && tier.cost == 0, "seed \(seed)")
        }
    }

    @Test func `a value beyond the limit is not stored and evicts nothing`() {
        let tier = MemoryTier<String, Int>(limits: .init(count: 3, cost: 10))
        tier.store(1, for: "a", cost: 4)
        tier.store(2, for: "huge", cost: .max)
        tier.store(4, for: "negative", cost: -5)
        #expect(tier["huge"] == nil && tier["a"] == 1 && tier["negative"] == 4 && tier.cost == 4)
        let none = MemoryTier<String, Int>(limits: .init(count: -1))
        none.store(1, for: "a")
        #expect(none["a"] == nil)
        tier.trim(cost: 0)
        #expect(tier["a"] == nil)
    }
}
