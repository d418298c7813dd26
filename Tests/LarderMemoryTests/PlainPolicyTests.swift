import LarderTime
import TestSupport
import Testing

@testable import LarderMemory

/// LRU, LFU and FIFO beside plain models.
@Suite("Memory tier, plain policies", .oneMinute)
struct PlainPolicyTests {
    /// Entries in an array; the first with the lowest number of uses leaves.
    private struct Model {
        let policy: EvictionPolicy
        let room: Int
        private(set) var entries: [(key: Int, uses: Int)] = []

        init(_ policy: EvictionPolicy, room: Int) {
            self.policy = policy
            self.room = room
        }

        mutating func use(_ key: Int) -> Bool {
            if let place = entries.firstIndex(where: { $0.key == key }) {
                guard policy != .fifo else { return true }
                let entry = entries.remove(at: place)
                entries.append((key, policy == .lfu ? min(63, entry.uses + 1) : 0))
                return true
            }
            if entries.count == room, let least = entries.map(\.uses).min() {
                entries.remove(at: entries.firstIndex { $0.uses == least } ?? 0)
            }
            entries.append((key, 0))
            return false
        }
    }

    @Test(arguments: [EvictionPolicy.lru, .lfu, .fifo])
    func `the policy matches its model`(_ policy: EvictionPolicy) {
        for seed in UInt64(1)...10 {
            var generator = SeededGenerator(seed: seed)
            let room = generator.uniform(in: 1..<40)
            var model = Model(policy, room: room)
            let tier = MemoryTier<Int, Int>(limits: .init(count: room), policy: policy)
            for step in 0..<3_000 {
                // Small numbers are more frequent.
                let key = generator.uniform(in: 0..<(1 + generator.uniform(in: 0..<90)))
                let isHit = tier[key] != nil
                if !isHit { tier.store(key, for: key) }
                if isHit != model.use(key) { Issue.record("seed \(seed), step \(step)") }
            }
            #expect(Set(tier.keys) == Set(model.entries.map(\.key)), "seed \(seed)")
        }
    }

    @Test func `each policy evicts another entry after the same reads`() {
        func left(_ policy: EvictionPolicy) -> Int? {
            let tier = MemoryTier<Int, Int>(limits: .init(count: 3), policy: policy)
            // Stored first: 1. Read longest ago: 2. Read least often: 3.
            for key in 1...3 { tier.store(key, for: key) }
            for key in [1, 1, 2, 2, 3, 1] { _ = tier[key] }
            tier.store(4, for: 4)
            return (1...3).first { tier.peek($0) == nil }
        }
        #expect(left(.fifo) == 1 && left(.lru) == 2 && left(.lfu) == 3)
    }
}
