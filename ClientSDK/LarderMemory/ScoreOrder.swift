/// The eviction order of slots in ranks: within a rank, later use means later eviction. A value without a lock.
///
/// With scores it is GreedyDual-Size (Cao and Irani, 1997), rounded to powers of two as in CAMP (Ghandeharizadeh et al., 2014): a score
/// is a rank, and the lowest leaves first, while those of unused slots decay. With LFU the rank is the number of uses; with LRU and FIFO
/// there is one rank. Each rank is a list, so that every operation is O(1).
struct ScoreOrder: ~Copyable {
    /// The maximum rank; scores double from one rank to the next.
    private static let rankMaximum = 63

    /// Any policy but `adaptive`.
    private let policy: EvictionPolicy
    private var lists = SlotLists(count: rankMaximum + 1)
    /// The score at which each slot is evicted.
    private var due = Slab<Double>(repeating: 0, count: 1)
    /// The score of the last eviction.
    private var floor = 0.0
    private var count = 0

    init(_ policy: EvictionPolicy) { self.policy = policy }

    mutating func grow(to capacity: Int) {
        lists.grow(to: capacity)
        due.grow(to: capacity, moving: due.capacity)
    }

    mutating func insert(_ slot: Int, hash: UInt32, score: Double) {
        let rank = policy == .greedyDual ? Self.rank(score) : 0
        lists.link(slot, to: rank, hash: hash)
        use(slot, rank)
        count += 1
    }

    mutating func touch(_ slot: Int) {
        guard policy != .fifo else { return }
        let rank = lists.list(of: slot)
        let next = policy == .lfu ? min(rank + 1, Self.rankMaximum) : rank
        use(slot, next)
        lists.move(slot, to: next)
    }

    private mutating func use(_ slot: Int, _ rank: Int) {
        // Uses are not forgotten: only the scores of GreedyDual decay, relative to a floor that rises.
        due[slot] = policy == .lfu ? Double(rank) : floor + Self.worth(rank)
    }

    mutating func remove(_ slot: Int) {
        lists.unlink(slot)
        count -= 1
    }

    /// The score of a slot at its insertion, as rounded.
    func score(_ slot: Int) -> Double { Self.worth(lists.list(of: slot)) }

    /// The lowest among the least recently used slot of each rank.
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
