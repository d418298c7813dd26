import LarderTime
import Synchronization
import TestSupport
import Testing

@testable import LarderMemory

@Suite("Memory tier, threads and limits", .oneMinute)
struct MemoryTierLimitTests {
    @Test func `with concurrent threads the limits hold and no entry is lost or kept twice`() async {
        let departed = Mutex(0)
        let tier = MemoryTier<String, String>(limits: .init(count: 5_000, cost: 60_000)) { _ in
            departed.withLock { $0 += 1 }
        }
        let stored = await withTaskGroup(of: Int.self) { group in
            for task in 0..<4 {
                group.addTask {
                    var generator = SeededGenerator(seed: UInt64(task))
                    var stored = 0
                    for step in 0..<10_000 {
                        let number = generator.uniform(in: 0..<12_000)
                        let key = "key \(number)"
                        switch generator.uniform(in: 0..<20) {
                        case 0..<8:
                            if let value = tier[key], value != "value \(number)" { Issue.record("\(key): \(value)") }
                        case 8..<19:
                            let cost = generator.uniform(in: 0..<(step % 500 == 0 ? 20_000 : 20))
                            tier.store("value \(number)", for: key, cost: cost)
                            stored += 1
                        default: tier.remove(key)
                        }
                        if task == 0, step % 5_000 == 2_500 { tier.trim(toCount: 2_000) }
                        if task == 1, step % 5_000 == 1_000 {
                            tier.setLimits(.init(count: step % 10_000 < 5_000 ? 3_000 : 5_000, cost: 50_000))
                        }
                    }
                    return stored
                }
            }
            return await group.reduce(0, +)
        }
        #expect(tier.count <= 5_000 && tier.cost <= 50_000)
        #expect(Set(tier.keys).count == tier.count)
        #expect(stored == departed.withLock { $0 } + tier.count)
        tier.removeAll()
        #expect(tier.count == 0 && tier.cost == 0 && tier.keys.isEmpty)
    }

    @Test func `less room under pressure evicts for that reason, and more room takes new entries`() {
        let reasons = Mutex<[MemoryTier<Int, Int>.Reason]>([])
        let tier = MemoryTier<Int, Int>(limits: .init(cost: 100)) { departure in
            reasons.withLock { $0.append(departure.reason) }
        }
        for key in 0..<4 { tier.store(key, for: key, cost: 25) }
        tier.setLimitsUnderPressure(.init(cost: 50))
        #expect(tier.cost == 50 && reasons.withLock { $0 } == [.pressure, .pressure])
        tier.store(4, for: 4, cost: 25)
        #expect(tier.cost == 50 && reasons.withLock { $0.last } == .cost)
        tier.setLimitsUnderPressure(.init(cost: 100))
        tier.store(5, for: 5, cost: 50)
        #expect(tier.cost == 100)
    }

    private final class Witness: Sendable {}

    @Test func `a released tier releases its values, and removed values are released at once`() {
        weak var gone: Witness?
        weak var held: Witness?
        do {
            let tier = MemoryTier<String, Witness>(limits: .init(count: 100))
            do {
                let witness = Witness()
                gone = witness
                tier.store(witness, for: "a")
                tier.store(Witness(), for: "a")
                let other = Witness()
                held = other
                for key in 0..<50 { tier.store(other, for: "\(key)") }
            }
            #expect(gone == nil && held != nil)
        }
        #expect(held == nil)
    }

    @Test func `a departure handler may use the tier`() {
        let other = Mutex<MemoryTier<Int, Int>?>(nil)
        let tier = MemoryTier<Int, Int>(limits: .init(count: 2)) { departure in
            let tier = other.withLock { $0 }
            _ = tier?[departure.key]
            tier?.store(departure.value, for: 1_000 + departure.key)
        }
        other.withLock { $0 = MemoryTier(limits: .init(count: 100)) }
        for key in 0..<10 { tier.store(key, for: key) }
        #expect(other.withLock { $0?.count } == 8)
    }

    @Test func `extreme limits and costs do not trap`() {
        let tier = MemoryTier<Int, Int>(limits: .init())
        for key in 0..<40 { tier.store(key, for: key, cost: .max) }
        #expect(tier.count == 1 && tier.cost == .max)
        tier.store(1, for: 1, cost: .min)
        #expect(tier.peek(1) == 1 && tier.count <= 2)
        tier.setLimits(.init(count: .min, cost: .min))
        #expect(tier.count == 0 && tier.cost == 0)
        tier.store(1, for: 1)
        #expect(tier.count == 0)
    }
}
