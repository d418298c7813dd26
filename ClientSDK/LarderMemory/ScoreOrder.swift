/// The eviction order of slots by score: the lowest leaves first, and scores of unused slots decay. A value without a lock.
///
/// GreedyDual-Size (Cao and Irani, 1997) with scores rounded to powers of two as in CAMP (Ghandeharizadeh et al., 2014): each rank is
/// an LRU list, so that every operation is O(1).
struct ScoreOrder: ~Copyable {
    /// The maximum rank; scores double from one rank to the next.
    private static let rankMaximum = 63

    private var lists = SlotLists(count: rankMaximum + 1)
    /// The score at which each slot is evicted.
    private var due = Slab<Double>(repeating: 0, count: 1)
    /// The score of the last eviction.
    private var floor = 0.0
    private var count = 0

    mutating func grow(to capacity: Int) {
        lists.grow(to: capacity)
        due.grow(to: capacity, moving: due.capacity)
    }

    mutating func insert(_ slot: Int, hash: UInt32, score: Double) {
        let rank = Self.rank(score)
        lists.link(slot, to: rank, hash: hash)
        due[slot] = floor + Self.worth(rank)
        count += 1
    }

    mutating func touch(_ slot: Int) {
        let rank = lists.list(of: slot)
        due[slot] = floor + Self.worth(rank)
        lists.move(slot, to: rank)
    }

    mutating func remove(_ slot: Int) {
        lists.unlink(slot)
        count -= 1
    }

    /// The score of a slot at its insertion, as rounded.
    func score(_ slot: Int) -> Double { Self.worth(lists.list(of: slot)) }

    /// The lowest among the least recently used slot of each rank: within a rank, later use means later eviction.
    mutating func victim() -> Int? {
        guard count > 0 else { return nil }
        var victim = -1
        for rank in 0...Self.rankMaximum where lists.count(rank) > 0 {
            let oldest = lists.oldest(rank)
            if victim < 0 || due[oldest] < due[victim] { victim = oldest }
        }
        floor = max(floor, due[victim])
        return victim
    }

    /// NaN and non-positive scores have the lowest rank.
    private static func rank(_ score: Double) -> Int {
        guard score > 0 else { return 0 }
        return score.isFinite ? min(rankMaximum, max(0, Int(score.exponent) + 32)) : rankMaximum
    }

    private static func worth(_ rank: Int) -> Double { Double(sign: .plus, exponent: rank - 32, significand: 1) }
}
