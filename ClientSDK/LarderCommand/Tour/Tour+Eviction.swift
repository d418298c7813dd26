import Foundation
import Larder

extension TourScene {
    /// A small memory tier, read by read, and policies on three patterns of reads.
    func eviction() async throws -> TourChapter {
        var chapter = begin(
            .eviction,
            "A memory tier has room for four values. Which one leaves when a fifth is stored, and how many reads find their value under "
                + "four patterns?"
        )
        let patterns: [(name: String, value: [Int])] = [
            ("popular values", Self.popular(20_000)), ("popular values, and lists read once", Self.scanned(20_000)),
            ("other values become popular", Self.popular(10_000) + Self.popular(10_000).map { 50_000 + $0 }),
            ("a loop that is too long", (0..<20_000).map { $0 % 250 }),
        ]
        let policies: [(name: String, value: EvictionPolicy)] = [
            ("first in, first out", .fifo), ("read least often", .lfu), ("read longest ago", .lru),
        ]
        let (table, rates) = try await TourTable.measured(
            "Share of hits in 20,000 reads, with room for 200 values",
            columns: ["reads"] + policies.map(\.name),
            patterns
        ) { reads in
            policies.map { Self.hitRate($0.value, reads, room: 200) }
        } row: { rates in
            rates.map { .text(Self.percent($0)) }
        }
        chapter.exhibits = [
            .steps(Self.small()), .table(table),
            .tryout(TourTryout(title: "Reads of your own with room for four", reads: Self.ownReads, room: 4)),
        ]
        // How far each policy is behind the best one, at most, in the points that the table shows.
        let points = rates.map { $0.map(Self.points) }
        let words = policies.indices.map { index in
            "\(policies[index].name) \(points.map { ($0.max() ?? 0) - $0[index] }.max() ?? 0)"
        }
        chapter.answer =
            "No fixed order is the best for all reads. Points of hits that each is behind the best one, at most: "
            + "\(words.joined(separator: ", ")). A MemoryTier evicts what was read longest ago unless another policy "
            + "is selected, and holds the values of a cache so; pictures are kept by score."
        return chapter
    }

    private static func points(_ share: Double) -> Int { Int((share * 100).rounded()) }

    private static func percent(_ share: Double) -> String { "\(points(share)) %" }

    /// Four hits if what was read longest ago leaves, five if what was read least often leaves, and three in the order of storing.
    private static let ownReads = ["a", "a", "b", "c", "f", "e", "f", "a", "b", "a", "d", "f"]

    private static let smallReads = ["a", "b", "c", "d", "a", "e", "b", "f", "a", "c"]

    /// Reads of six values through a tier for four.
    private static func small() -> TourSteps {
        let tier = MemoryTier<String, String>(limits: .init(count: 4), policy: .lru)
        let reads = smallReads
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
