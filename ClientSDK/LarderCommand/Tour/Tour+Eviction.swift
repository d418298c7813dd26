import Foundation
import Larder

extension TourScene {
    /// A small memory tier, read by read, and policies on four patterns of reads.
    func eviction() async throws -> TourChapter {
        let patterns: [(name: String, value: [Int])] = [
            ("popular values", Self.popular(20_000)), ("popular values, and lists read once", Self.scanned(20_000)),
            ("other values become popular", Self.popular(10_000) + Self.popular(10_000).map { 50_000 + $0 }),
            ("a loop that is too long", (0..<20_000).map { $0 % 250 }),
        ]
        let policies: [(name: String, value: EvictionPolicy)] = [
            ("stored first", .fifo), ("read least often", .lfu), ("read longest ago", .lru),
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
        // How far each policy is behind the best one, at most, in the points that the table shows.
        let points = rates.map { $0.map(Self.points) }
        let words = policies.indices.map { index in
            "\(policies[index].name) \(points.map { ($0.max() ?? 0) - $0[index] }.max() ?? 0)"
        }
        return TourChapter(
            name: .eviction,
            question:
                "A memory tier has room for four values. Which one leaves when a fifth is stored, and how many reads find their value under "
                + "four patterns? With --reads it is filled with reads of your own.",
            tables: policies.map { Self.small($0.name, $0.value, reads ?? "a a b c f e f a b a d f") } + [table],
            answer:
                "No fixed order is the best for all reads. Points of hits that each is behind the best one, at most: "
                + "\(words.joined(separator: ", ")). A MemoryTier evicts what was read longest ago unless another policy "
                + "is selected, and holds the values of a cache so; pictures are kept by score."
        )
    }

    private static func points(_ share: Double) -> Int { Int((share * 100).rounded()) }

    private static func percent(_ share: Double) -> String { "\(points(share)) %" }

    /// Reads of named values through a tier with room for four.
    private static func small(_ name: String, _ policy: EvictionPolicy, _ reads: String) -> TourTable {
        let tier = MemoryTier<String, String>(limits: .init(count: 4), policy: policy)
        var rows: [[TourValue]] = []
        for key in reads.split(separator: " ").map({ String($0) }) {
            let before = Set(tier.keys)
            let isHit = tier[key] != nil
            if !isHit { tier.store(key, for: key) }
            let left = before.subtracting(tier.keys).sorted().joined(separator: " ")
            let kept = tier.keys.sorted().joined(separator: " ")
            rows.append([.text(key), .text(isHit ? "yes" : "no"), .text(left), .text(kept)])
        }
        let title = "Room for four; what was \(name) leaves: \(tier.statistics.hits) of \(rows.count) reads found"
        return TourTable(title: title, columns: ["read", "found", "leaves", "in memory"], rows: rows)
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
