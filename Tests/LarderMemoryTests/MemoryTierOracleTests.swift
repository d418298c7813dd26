import LarderTime
import Synchronization
import TestSupport
import Testing

@testable import LarderMemory

@Suite("Memory tier beside an oracle", .oneMinute)
struct MemoryTierOracleTests {
    private struct Known {
        var value: Int
        var cost: Int
    }

    /// The expected content: stored entries without the reported departures.
    private final class Oracle: Sendable {
        private struct State {
            var entries: [String: Known] = [:]
            var cost = 0
        }

        private let state = Mutex(State())

        subscript(key: String) -> Known? { state.withLock { $0.entries[key] } }

        var count: Int { state.withLock { $0.entries.count } }

        var cost: Int { state.withLock { $0.cost } }

        var keys: Set<String> { state.withLock { Set($0.entries.keys) } }

        func store(_ known: Known, for key: String) {
            state.withLock { state in
                state.entries[key] = known
                state.cost += known.cost
            }
        }

        func leave(_ departure: MemoryTier<String, Int>.Departure) {
            let known = state.withLock { state in
                let known = state.entries.removeValue(forKey: departure.key)
                state.cost -= known?.cost ?? 0
                return known
            }
            MemoryTierOracleTests.check(
                known?.value == departure.value && known?.cost == departure.cost,
                "\(departure) was not there"
            )
        }
    }

    /// Cheaper than `#expect`, for checks that run some hundred thousand times.
    private static func check(_ isRight: Bool, _ note: @autoclosure () -> String) {
        if !isRight { Issue.record("\(note())") }
    }

    @Test(arguments: [false, true])
    func `the entries are those that were stored and not reported as removed`(hasScores: Bool) {
        for seed in UInt64(1)...3 {
            var generator = SeededGenerator(seed: seed)
            var limits = MemoryTier<String, Int>.Limits(
                count: generator.uniform(in: 1..<400),
                cost: generator.uniform(in: 1..<4_000)
            )
            let oracle = Oracle()
            let tier = MemoryTier<String, Int>(limits: limits) { oracle.leave($0) }
            for step in 0..<1_500 {
                var note: String { "seed \(seed), step \(step)" }
                let key = "key \(generator.uniform(in: 0..<700))"
                switch generator.uniform(in: 0..<100) {
                case 0..<50:
                    let cost = generator.uniform(in: 0..<(generator.uniform(in: 0..<20) == 0 ? 4_000 : 30))
                    let score = hasScores ? Double(generator.uniform(in: 1..<1_000)) : 1
                    tier.store(step, for: key, cost: cost, score: score)
                    // Departures are reported before `store` returns, including a replaced value.
                    Self.check(oracle[key] == nil, note)
                    if limits.count > 0, limits.cost > 0, cost <= limits.cost {
                        oracle.store(Known(value: step, cost: cost), for: key)
                    }
                case 50..<85:
                    let known = oracle[key]
                    Self.check(tier.peek(key) == known?.value, note)
                    Self.check(tier[key] == known?.value, note)
                case 85..<97:
                    let known = oracle[key]
                    Self.check(tier.remove(key) == known?.value, note)
                case 97:
                    tier.trim(
                        toCount: generator.uniform(in: 0..<400),
                        cost: generator.uniform(in: 0..<4_000)
                    )
                case 98:
                    limits = .init(count: generator.uniform(in: 0..<400), cost: generator.uniform(in: 0..<4_000))
                    tier.setLimits(limits)
                default:
                    if generator.uniform(in: 0..<5) == 0 { tier.removeAll() }
                }
                Self.check(tier.count <= limits.count && tier.cost <= limits.cost, note)
                Self.check(tier.count == oracle.count, note)
                Self.check(tier.cost == oracle.cost, note)
                if step % 100 == 0 { Self.check(Set(tier.keys) == oracle.keys, note) }
            }
        }
    }

    @Test func `a value as large as the limit is stored, and the oldest make room for it`() {
        let tier = MemoryTier<String, Int>(limits: .init(count: 5_000, cost: 5_000))
        for key in 0..<5_000 { tier.store(key, for: "\(key)") }
        tier.store(-1, for: "half", cost: 2_500)
        #expect(tier["half"] == -1 && tier.cost == 5_000 && tier.count == 2_501)
        #expect(Set(tier.keys.compactMap(Int.init)) == Set(2_500..<5_000))
        tier.store(-2, for: "all", cost: 5_000)
        #expect(tier["all"] == -2 && tier.count == 1 && tier.cost == 5_000)
    }
}
