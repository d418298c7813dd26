/// The eviction order of slots in ranks: within a rank, later use means later eviction. A value without a lock.
///
/// It is GreedyDual-Size (Cao and Irani, 1997), rounded to powers of two as in CAMP (Ghandeharizadeh et al., 2014): a score is a rank, and
/// the lowest leaves first, while those of unused slots decay. With equal scores there is one rank, and it is LRU. Each rank is a doubly
/// linked list, so that every operation is O(1).
@usableFromInline struct EvictionOrder: Sendable {
    private struct Link {
        var rank = 0
        var newer: Int?
        var older: Int?
        /// The score at which the slot is evicted.
        var due = 0.0
    }

    /// The maximum rank; scores double from one rank to the next.
    private static let rankMaximum = 63

    private var links: [Link] = []
    private var ranks = [(newest: Int?, oldest: Int?)](repeating: (nil, nil), count: rankMaximum + 1)
    /// The score of the last eviction.
    private var floor = 0.0

    mutating func insert(_ slot: Int, score: Double) {
        while slot >= links.count { links.append(Link()) }
        link(slot, to: Self.rank(score))
    }

    @usableFromInline mutating func touch(_ slot: Int) {
        let rank = links[slot].rank
        remove(slot)
        link(slot, to: rank)
    }

    mutating func remove(_ slot: Int) {
        let own = links[slot]
        if let newer = own.newer { links[newer].older = own.older } else { ranks[own.rank].newest = own.older }
        if let older = own.older { links[older].newer = own.newer } else { ranks[own.rank].oldest = own.newer }
    }

    /// The next slot to evict: the lowest among the least recently used of each rank; nil if there is none. It stays until it is removed.
    mutating func victim() -> Int? {
        var victim: (slot: Int, due: Double)?
        for rank in ranks {
            guard let oldest = rank.oldest, links[oldest].due < victim?.due ?? .infinity else { continue }
            victim = (oldest, links[oldest].due)
        }
        if let victim { floor = max(floor, victim.due) }
        return victim?.slot
    }

    /// Makes a slot the newest of a rank.
    private mutating func link(_ slot: Int, to rank: Int) {
        // Scores decay relative to a floor that rises.
        let due = floor + Double(sign: .plus, exponent: rank - 32, significand: 1)
        let newest = ranks[rank].newest
        links[slot] = Link(rank: rank, older: newest, due: due)
        if let newest { links[newest].newer = slot } else { ranks[rank].oldest = slot }
        ranks[rank].newest = slot
    }

    /// NaN and non-positive scores have the lowest rank.
    private static func rank(_ score: Double) -> Int {
        guard score > 0 else { return 0 }
        return score.isFinite ? min(rankMaximum, max(0, Int(score.exponent) + 32)) : rankMaximum
    }
}
