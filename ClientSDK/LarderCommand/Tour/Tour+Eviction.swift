import Foundation
import Larder

extension TourScene {
    /// A small memory tier, read by read, and policies on three patterns of reads.
    func eviction() async throws -> TourChapter {
        var chapter = begin(
            .eviction,
            "A memory tier has room for four values. Which one leaves when a fifth is stored, and how many reads find their value under "
                + "three patterns?"
        )
        let patterns: [(name: String, value: [Int])] = [
            ("popular values", Self.popular(20_000)), ("popular values, and lists read once", Self.scanned(20_000)),
            ("a loop that is too long", (0..<20_000).map { $0 % 250 }),
        ]
        let (table, rates) = try await TourTable.measured(
            "Share of hits in 20,000 reads of 2,000 values, with room for 200",
            columns: ["reads", "first in, first out", "read longest ago", "adaptive"],
            patterns
        ) { reads in
            [
                Self.firstInFirstOut(reads, room: 200), Self.hitRate(.greedyDual, reads, room: 200),
                Self.hitRate(.adaptive, reads, room: 200),
            ]
        } row: { rates in
            rates.map { .text("\(Int(($0 * 100).rounded())) %") }
        }
        chapter.exhibits = [.steps(Self.small()), .table(table)]
        let (scan, loop) = (rates[1], rates[2])
        chapter.answer =
            "The value that was read longest ago leaves. That order keeps \(Self.percent(scan[1])) of the reads in memory when lists are read "
            + "once in between and \(Self.percent(loop[1])) in a long loop; the adaptive policy, which Larder uses, \(Self.percent(scan[2])) and "
            + "\(Self.percent(loop[2]))."
        return chapter
    }

    private static func percent(_ share: Double) -> String { "\(Int((share * 100).rounded())) %" }

    /// Reads of six values through a tier for four.
    private static func small() -> TourSteps {
        // Without scores the policy is LRU.
        let tier = MemoryTier<String, String>(limits: .init(count: 4), policy: .greedyDual)
        let reads = ["a", "b", "c", "d", "a", "e", "b", "f", "a", "c"]
        let names = Set(reads).sorted()
        var steps = TourSteps(title: "Ten reads with room for four", steps: [])
        for name in reads {
            let isHit = tier[name] != nil
            let before = Set(tier.keys)
            if !isHit { tier.store(name, for: name) }
            let present = Set(tier.keys)
            let left = before.subtracting(present).first
            let caption =
                isHit
                ? "\(name) is read: in memory"
                : "\(name) is read: not in memory, stored" + (left.map { "; \($0) leaves, read longest ago" } ?? "")
            steps.steps.append(
                TourSteps.Step(
                    caption: caption,
                    boxes: names.map { key in
                        let isPresent = present.contains(key)
                        let text = key == left ? "evicted" : isPresent ? "in memory" : "not in memory"
                        let tone: TourSteps.Tone =
                            key == left
                            ? .bad : key == name ? (isHit ? .good : .warning) : isPresent ? .neutral : .absent
                        return TourSteps.Box(label: key, text: text, tone: tone)
                    }
                )
            )
        }
        return steps
    }

    /// Reads of 2,000 values whose popularity falls with their number.
    private static func popular(_ count: Int) -> [Int] {
        var random = SeededGenerator(seed: 7)
        return (0..<count).map { _ in Int(pow(2_000, random.unit())) - 1 }
    }

    /// The same; after each 1,000 reads a list of 300 other values is read once.
    private static func scanned(_ count: Int) -> [Int] {
        var reads = popular(count)
        for start in stride(from: 1_000, to: count - 300, by: 1_300) {
            for offset in 0..<300 { reads[start + offset] = 10_000 + start + offset }
        }
        return reads
    }

    private static func hitRate(_ policy: EvictionPolicy, _ reads: [Int], room: Int) -> Double {
        let tier = MemoryTier<Int, Int>(limits: .init(count: room), policy: policy)
        for key in reads where tier[key] == nil { tier.store(key, for: key) }
        return tier.statistics.hitRate
    }

    private static func firstInFirstOut(_ reads: [Int], room: Int) -> Double {
        var present: Set<Int> = []
        var order: [Int] = []
        var next = 0
        var hits = 0
        for key in reads {
            if present.contains(key) {
                hits += 1
                continue
            }
            if present.count == room {
                present.remove(order[next])
                next += 1
            }
            present.insert(key)
            order.append(key)
        }
        return Double(hits) / Double(max(1, reads.count))
    }
}

extension TourTable {
    /// Measures cases and makes a row of each: its name, and what `row` makes of the result.
    ///
    /// - Returns: the table, and the results in the order of the cases.
    static func measured<Case, Result>(
        _ title: String,
        columns: [String],
        _ cases: [(name: String, value: Case)],
        _ measure: (Case) async throws -> Result,
        row: (Result) -> [TourValue]
    ) async throws -> (table: TourTable, results: [Result]) {
        var table = TourTable(title: title, columns: columns, rows: [])
        var results: [Result] = []
        for (name, value) in cases {
            let result = try await measure(value)
            results.append(result)
            table.rows.append([.text(name)] + row(result))
        }
        return (table, results)
    }
}
