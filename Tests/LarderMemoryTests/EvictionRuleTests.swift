import LarderTime
import TestSupport
import Testing

@testable import LarderMemory

/// The rules beside plain models, and changes between them.
@Suite("Eviction rules", .oneMinute)
struct EvictionRuleTests {
    private static func hash(_ key: Int) -> UInt32 {
        UInt32(truncatingIfNeeded: KeyHash.fold(UInt64(key) ^ 0x9E37_79B9_7F4A_7C15, 0xC2B2_AE3D_27D4_EB4F) >> 16)
    }

    /// LRU as an array, oldest first.
    private struct Recency {
        let maximum: Int
        var order: [Int] = []

        mutating func use(_ key: Int) -> Bool {
            let place = order.firstIndex(of: key)
            if let place { order.remove(at: place) } else if order.count == maximum { order.removeFirst() }
            order.append(key)
            return place != nil
        }
    }

    /// S3-FIFO as two arrays, oldest first.
    private struct QuickDemotion {
        let maximum: Int
        var small: [(key: Int, uses: Int)] = []
        var main: [(key: Int, uses: Int)] = []
        var ghosts: [Int] = []

        mutating func use(_ key: Int) -> Bool {
            if let place = small.firstIndex(where: { $0.key == key }) {
                small[place].uses = min(3, small[place].uses + 1)
                return true
            }
            if let place = main.firstIndex(where: { $0.key == key }) {
                main[place].uses = min(3, main[place].uses + 1)
                return true
            }
            if small.count + main.count == maximum { evict() }
            if let place = ghosts.lastIndex(of: key) {
                ghosts[place] = -1
                main.append((key, 0))
            } else {
                small.append((key, 0))
            }
            return false
        }

        private mutating func evict() {
            while true {
                if small.count * 10 > maximum || main.isEmpty {
                    let first = small.removeFirst()
                    if first.uses > 1 {
                        main.append((first.key, 0))
                    } else {
                        ghosts.append(first.key)
                        if ghosts.count > maximum { ghosts.removeFirst() }
                        return
                    }
                } else {
                    let first = main.removeFirst()
                    if first.uses == 0 { return }
                    main.append((first.key, first.uses - 1))
                }
            }
        }
    }

    @Test func `LRU and S3-FIFO match their models`() {
        for seed in UInt64(1)...10 {
            var generator = SeededGenerator(seed: seed)
            let maximum = generator.uniform(in: 1..<40)
            var shadows = ShadowTiers()
            var recency = Recency(maximum: maximum)
            var demotion = QuickDemotion(maximum: maximum)
            let sketch = FrequencySketch()
            for step in 0..<3_000 {
                // Small numbers are more frequent.
                let key = generator.uniform(in: 0..<(1 + generator.uniform(in: 0..<90)))
                let (hash, note) = (Self.hash(key), "seed \(seed), step \(step)")
                let holders = shadows.use(hash, maximum: maximum, sketch)
                if holders.contains(.recency) != recency.use(key) { Issue.record("LRU, \(note)") }
                if holders.contains(.quickDemotion) != demotion.use(key) { Issue.record("S3-FIFO, \(note)") }
            }
        }
    }

    @Test func `W-TinyLFU keeps a part of a loop, and a used entry while others pass once`() {
        func hits(_ keys: [Int], counting counted: Int) -> Int {
            var sketch = FrequencySketch()
            sketch.grow(to: 256)
            var tiers = ShadowTiers()
            var hits = 0
            for (step, key) in keys.enumerated() {
                sketch.add(Self.hash(key))
                let isHit = tiers.use(Self.hash(key), maximum: 200, sketch).contains(.frequency)
                if isHit, step >= keys.count - counted { hits += 1 }
            }
            return hits
        }
        let loop = hits((0..<30_000).map { $0 % 300 }, counting: 30_000)
        #expect(loop > 15_000, "\(loop)")
        let used = (0..<750).map { $0 % 150 }
        let scanned = hits(used + Array(1_000..<1_600) + Array(0..<150), counting: 150)
        #expect(scanned > 140, "\(scanned)")
    }

    @Test func `the sketch never estimates too low, forgets, and keeps its estimates when it grows`() {
        var generator = SeededGenerator(seed: 3)
        var sketch = FrequencySketch()
        sketch.grow(to: 512)
        var uses: [Int: Int] = [:]
        for _ in 0..<2_000 {
            let key = generator.uniform(in: 0..<400)
            uses[key, default: 0] += 1
            sketch.add(Self.hash(key))
        }
        for size in [512, 1_024] {
            sketch.grow(to: size)
            #expect(uses.allSatisfy { sketch.estimate(Self.hash($0)) >= min(15, $1) }, "\(size)")
        }
        let unknown = (10_000..<11_000).map { sketch.estimate(Self.hash($0)) }
        #expect(unknown.filter { $0 > 1 }.count < 50)
        for key in 20_000..<50_000 { sketch.add(Self.hash(key)) }
        #expect(uses.keys.filter { sketch.estimate(Self.hash($0)) >= 5 }.count < 20)
    }

    @Test func `no slot is lost or evicted twice when the rule changes`() {
        for seed in UInt64(1)...12 {
            var generator = SeededGenerator(seed: seed)
            var order = EvictionOrder(.quickDemotion, mayChange: true)
            order.grow(to: 64)
            var sketch = FrequencySketch()
            sketch.grow(to: 64)
            var present: Set<Int> = []
            for step in 0..<4_000 {
                switch generator.uniform(in: 0..<100) {
                case 0: order.rule = EvictionOrder.Rule(rawValue: generator.uniform(in: 0..<3)) ?? .recency
                case 1..<40:
                    guard let slot = (0..<64).first(where: { !present.contains($0) }) else { break }
                    let hash = UInt32(truncatingIfNeeded: generator.next())
                    sketch.add(hash)
                    order.insert(slot, hash: hash)
                    present.insert(slot)
                case 40..<80:
                    if let slot = present.min(by: { ($0 ^ step) & 63 < ($1 ^ step) & 63 }) { order.touch(slot) }
                case 80..<84:
                    if let slot = present.min(by: { ($0 ^ step) & 63 < ($1 ^ step) & 63 }) {
                        order.remove(slot)
                        present.remove(slot)
                    }
                default:
                    let victim = order.victim(sketch)
                    if (victim == nil) != present.isEmpty { Issue.record("seed \(seed), step \(step): no victim") }
                    guard let victim else { break }
                    if present.remove(victim) == nil { Issue.record("seed \(seed), step \(step): \(victim) is gone") }
                    order.remove(victim)
                }
                if order.count != present.count { Issue.record("seed \(seed), step \(step): \(order.count)") }
            }
        }
    }
}
