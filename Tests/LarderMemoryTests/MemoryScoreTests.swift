import LarderTime
import TestSupport
import Testing

@testable import LarderMemory

@Suite("Memory tier, scores", .oneMinute)
struct MemoryScoreTests {
    /// A plain GreedyDual: the entry with the lowest score is evicted, and its score is added to new ones.
    private struct Model {
        private struct Entry {
            var cost: Int
            var rank: Int
            var due: Double
            var order: Int
        }

        private var entries: [Int: Entry] = [:]
        private var floor = 0.0
        private var last = 0
        let limit: Int

        init(limit: Int) { self.limit = limit }

        var keys: Set<Int> { Set(entries.keys) }

        mutating func touch(_ key: Int) {
            guard var entry = entries[key] else { return }
            last += 1
            entry.due = floor + Double(sign: .plus, exponent: entry.rank, significand: 1)
            entry.order = last
            entries[key] = entry
        }

        mutating func store(_ key: Int, cost: Int, score: Double) {
            entries[key] = nil
            while entries.values.reduce(cost, { $0 + $1.cost }) > limit {
                let victim = entries.min {
                    ($0.value.due, $0.value.rank, $0.value.order) < ($1.value.due, $1.value.rank, $1.value.order)
                }
                guard let victim else { return }
                floor = max(floor, victim.value.due)
                entries[victim.key] = nil
            }
            last += 1
            let rank = Int(score.exponent)
            let due = floor + Double(sign: .plus, exponent: rank, significand: 1)
            entries[key] = Entry(cost: cost, rank: rank, due: due, order: last)
        }
    }

    @Test func `the entry with the lowest score is evicted, and scores of unused entries decay`() {
        for seed in UInt64(1)...8 {
            var generator = SeededGenerator(seed: seed)
            var model = Model(limit: 400)
            let tier = MemoryTier<Int, Int>(limits: .init(cost: 400))
            for step in 0..<2_000 {
                let key = generator.uniform(in: 0..<120)
                if generator.uniform(in: 0..<2) == 0 {
                    _ = tier[key]
                    model.touch(key)
                } else {
                    let cost = generator.uniform(in: 1..<60)
                    let score = Double(generator.uniform(in: 1..<5_000)) / Double(cost)
                    tier.store(step, for: key, cost: cost, score: score)
                    model.store(key, cost: cost, score: score)
                }
                let isSame = Set(tier.keys) == model.keys
                if !isSame { Issue.record("seed \(seed), step \(step)") }
            }
        }
    }

    @Test func `an expensive entry stays while cheap ones pass, and is evicted when it was unused for long`() {
        func isThere(after count: Int, score: Double) -> Bool {
            let tier = MemoryTier<Int, Int>(limits: .init(count: 10))
            tier.store(0, for: -1, score: score)
            for key in 0..<count { tier.store(key, for: key) }
            return tier.peek(-1) != nil
        }
        #expect(isThere(after: 100, score: 32) && !isThere(after: 100, score: 1))
        #expect(!isThere(after: 1_000, score: 32))
        // Such scores are the lowest.
        for score in [Double.nan, -1, 0, -Double.infinity] { #expect(!isThere(after: 10, score: score)) }
        #expect(isThere(after: 10_000, score: Double.infinity))
    }

    @Test func `without scores the one that was used longest ago leaves`() {
        for seed in UInt64(1)...10 {
            var generator = SeededGenerator(seed: seed)
            let room = generator.uniform(in: 1..<40)
            var model: [Int] = []
            let tier = MemoryTier<Int, Int>(limits: .init(count: room))
            for step in 0..<3_000 {
                // Small numbers are more frequent.
                let key = generator.uniform(in: 0..<(1 + generator.uniform(in: 0..<90)))
                let place = model.firstIndex(of: key)
                let isHit = tier[key] != nil
                if !isHit { tier.store(key, for: key) }
                if isHit != (place != nil) { Issue.record("seed \(seed), step \(step)") }
                if let place { model.remove(at: place) } else if model.count == room { model.removeFirst() }
                model.append(key)
            }
            #expect(Set(tier.keys) == Set(model), "seed \(seed)")
        }
    }
}
