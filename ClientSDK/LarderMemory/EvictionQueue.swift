/// The eviction order of slots. A value without a lock.
///
/// Slots are linked by index: no operation allocates once there is room for them, and each is O(1), amortised if a hand moves or
/// frequencies decay. Use counts are stored separately, a byte each, because a hit needs no more.
@usableFromInline struct EvictionQueue: ~Copyable {
    @usableFromInline struct Links {
        var newer: Int32 = -1
        var older: Int32 = -1
        /// The hash of the key, by which the queue remembers evicted keys.
        var hash: UInt32 = 0
        var list: Int32 = 0
    }

    @usableFromInline struct List {
        var newest: Int32 = -1
        var oldest: Int32 = -1
        var count = 0
    }

    /// The maximum of LFU's frequencies.
    private static let frequencyMaximum = 15
    private static let main = 0
    private static let small = 1

    @usableFromInline let policy: EvictionPolicy
    /// The use count of each slot, up to the limit of the policy.
    @usableFromInline var uses: Slab<UInt8>
    private var links: Slab<Links>
    private var lists: Slab<List>
    private var hand: Int32 = -1
    private var touches = 0
    private var ghosts = GhostTable()
    private var count = 0
    /// For `greedyDual`: the score at which each slot is evicted, and the score of the last eviction.
    private var due: Slab<Double>
    private var floor = 0.0

    @usableFromInline init(_ policy: EvictionPolicy) {
        self.policy = policy
        uses = Slab(repeating: 0, count: 1)
        links = Slab(repeating: Links(), count: 1)
        let count =
            switch policy {
            case .lfu: Self.frequencyMaximum + 1
            case .greedyDual: Self.rankMaximum + 1
            case .lru, .fifo, .sieve, .s3fifo: 2
            }
        lists = Slab(repeating: List(), count: count)
        due = Slab(repeating: 0, count: 1)
    }

    /// Reserves room for slots up to a number.
    @usableFromInline mutating func grow(to capacity: Int) {
        uses.grow(to: capacity, moving: uses.capacity)
        links.grow(to: capacity, moving: links.capacity)
        if policy == .greedyDual { due.grow(to: capacity, moving: due.capacity) }
    }

    // MARK: Events of entries

    /// - Parameters:
    ///   - hash: the hash of the key, by which the queue remembers evicted keys.
    ///   - score: the value of the entry for its size; used by `greedyDual` only.
    @usableFromInline mutating func insert(_ slot: Int, hash: UInt32, score: Double) {
        uses[slot] = 0
        count += 1
        switch policy {
        case .s3fifo: link(slot, to: ghosts.remove(hash) ? Self.main : Self.small, hash: hash)
        case .lfu:
            link(slot, to: 0, hash: hash)
            countTowardsAging()
        case .greedyDual:
            let rank = Self.rank(score)
            link(slot, to: rank, hash: hash)
            due[slot] = floor + Self.worth(rank)
        case .lru, .fifo, .sieve: link(slot, to: Self.main, hash: hash)
        }
    }

    /// The score of a slot at its insertion, as rounded by the policy.
    @usableFromInline func score(_ slot: Int) -> Double {
        policy == .greedyDual ? Self.worth(Int(links[slot].list)) : 1
    }

    @inlinable mutating func touch(_ slot: Int) {
        switch policy {
        case .fifo: break
        case .sieve: uses[slot] = 1
        case .s3fifo:
            let used = uses[slot]
            if used < 3 { uses[slot] = used + 1 }
        case .lru, .lfu, .greedyDual: move(slot)
        }
    }

    @usableFromInline mutating func remove(_ slot: Int) {
        unlink(slot)
        count -= 1
    }

    /// The next slot to evict. It stays until it is removed.
    @usableFromInline mutating func victim() -> Int? {
        guard count > 0 else { return nil }
        switch policy {
        case .lru, .fifo: return Int(lists[Self.main].oldest)
        case .lfu:
            for frequency in 0...Self.frequencyMaximum where lists[frequency].count > 0 {
                return Int(lists[frequency].oldest)
            }
            return nil
        case .sieve: return sieve()
        case .s3fifo: return s3fifo()
        case .greedyDual: return greedyDual()
        }
    }

    // MARK: Policies

    @usableFromInline mutating func move(_ slot: Int) {
        if policy == .greedyDual {
            let rank = Int(links[slot].list)
            due[slot] = floor + Self.worth(rank)
            return move(slot, to: rank)
        }
        guard policy == .lfu else {
            guard lists[Self.main].newest != Int32(slot) else { return }
            return move(slot, to: Self.main)
        }
        move(slot, to: min(Self.frequencyMaximum, Int(links[slot].list) + 1))
        countTowardsAging()
    }

    private mutating func sieve() -> Int {
        var current = hand >= 0 ? hand : lists[Self.main].oldest
        while uses[Int(current)] > 0 {
            uses[Int(current)] = 0
            current = links[Int(current)].newer >= 0 ? links[Int(current)].newer : lists[Self.main].oldest
        }
        hand = links[Int(current)].newer
        return Int(current)
    }

    private mutating func s3fifo() -> Int {
        while true {
            if lists[Self.small].count * 10 > count || lists[Self.main].count == 0 {
                let slot = Int(lists[Self.small].oldest)
                guard uses[slot] > 1 else {
                    ghosts.add(links[slot].hash, capacity: count)
                    return slot
                }
                uses[slot] = 0
                move(slot, to: Self.main)
            } else {
                let slot = Int(lists[Self.main].oldest)
                guard uses[slot] > 0 else { return slot }
                uses[slot] -= 1
                move(slot, to: Self.main)
            }
        }
    }

    /// The lowest among the least recently used slot of each rank: within a rank, later use means later eviction.
    private mutating func greedyDual() -> Int {
        var victim = -1
        for rank in 0...Self.rankMaximum where lists[rank].count > 0 {
            let oldest = Int(lists[rank].oldest)
            if victim < 0 || due[oldest] < due[victim] { victim = oldest }
        }
        floor = max(floor, due[victim])
        return victim
    }

    /// The maximum rank; scores double from one rank to the next.
    private static let rankMaximum = 63

    /// NaN and non-positive scores have the lowest rank.
    private static func rank(_ score: Double) -> Int {
        guard score > 0 else { return 0 }
        return score.isFinite ? min(rankMaximum, max(0, Int(score.exponent) + 32)) : rankMaximum
    }

    private static func worth(_ rank: Int) -> Double { Double(sign: .plus, exponent: rank - 32, significand: 1) }

    private mutating func countTowardsAging() {
        touches += 1
        if touches > 8 * max(16, count) { age() }
    }

    /// Halves all frequencies, so that formerly popular entries leave.
    private mutating func age() {
        touches = 0
        for frequency in 1...Self.frequencyMaximum {
            while lists[frequency].count > 0 { move(Int(lists[frequency].oldest), to: frequency / 2) }
        }
    }

    // MARK: Lists

    private mutating func move(_ slot: Int, to list: Int) {
        let hash = unlink(slot)
        link(slot, to: list, hash: hash)
    }

    private mutating func link(_ slot: Int, to list: Int, hash: UInt32) {
        let newest = lists[list].newest
        links[slot] = Links(older: newest, hash: hash, list: Int32(list))
        if newest >= 0 { links[Int(newest)].newer = Int32(slot) } else { lists[list].oldest = Int32(slot) }
        lists[list].newest = Int32(slot)
        lists[list].count += 1
    }

    /// Returns the hash of the slot's key.
    @discardableResult private mutating func unlink(_ slot: Int) -> UInt32 {
        let own = links[slot]
        let list = Int(own.list)
        if hand == Int32(slot) { hand = own.newer }
        if own.newer >= 0 { links[Int(own.newer)].older = own.older } else { lists[list].newest = own.older }
        if own.older >= 0 { links[Int(own.older)].newer = own.newer } else { lists[list].oldest = own.newer }
        lists[list].count -= 1
        return own.hash
    }
}
