import Larder

extension TourScene {
    /// A small memory tier, read by read.
    func eviction() async throws -> TourChapter {
        let tier = MemoryTier<String, String>(limits: .init(count: 4))
        var rows: [[TourValue]] = []
        for key in (reads ?? "a a b c f e f a b a d f").split(separator: " ").map({ String($0) }) {
            let before = Set(tier.keys)
            let isHit = tier[key] != nil
            if !isHit { tier.store(key, for: key) }
            let left = before.subtracting(tier.keys).sorted().joined(separator: " ")
            let kept = tier.keys.sorted().joined(separator: " ")
            rows.append([.text(key), .text(isHit ? "yes" : "no"), .text(left), .text(kept)])
        }
        let hits = tier.statistics.hits
        return TourChapter(
            name: .eviction,
            question:
                "A memory tier has room for four values. Which one leaves when a fifth is stored? With --reads it is filled with reads of "
                + "your own.",
            tables: [
                TourTable(title: "Room for four", columns: ["read", "found", "leaves", "in memory"], rows: rows)
            ],
            answer:
                "\(hits) of \(rows.count) reads found their value. What was read longest ago leaves (LRU), because what was read just now is "
                + "likely to be read again. Pictures also have a score: of those that take as many bytes, the one that is made soonest leaves."
        )
    }
}
