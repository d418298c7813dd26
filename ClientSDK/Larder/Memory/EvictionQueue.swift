/// The order in which entries leave, by number of their slot. A value for its owner to protect.
///
/// Slots are linked by index through one array: no operation allocates once the array has grown, and each is O(1), amortised
/// where a hand moves or frequencies age.
@usableFromInline struct EvictionQueue: Sendable {
    private struct Links: Sendable {
        var newer: Int32 = -1
        var older: Int32 = -1
        var list: Int8 = -1
        var frequency: UInt8 = 0
        /// Of the key, by which the queue remembers what it has let go.
        var hash = 0
    }

    private struct List {
        var newest: Int32 = -1
        var oldest: Int32 = -1
        var count = 0
    }

    /// LFU's frequencies go from 0 to this.
    private static let frequencyMaximum = 15
    private static let (main, small) = (0, 1)

    private let policy: EvictionPolicy
    private var links: [Links] = []
    private var lists: [List]
    private var hand: Int32 = -1
    private var touches = 0
    private var ghosts = GhostQueue()
    private(set) var count = 0

    @usableFromInline init(_ policy: EvictionPolicy) {
        self.policy = policy
        lists = Array(repeating: List(), count: policy == .lfu ? Self.frequencyMaximum + 1 : 2)
    }

    // MARK: What happens to entries

    /// - Parameter hash: of the key, by which the queue remembers what it has let go.
    @usableFromInline mutating func insert(_ slot: Int, hash: Int) {
        while links.count <= slot { links.append(Links()) }
        links[slot].frequency = 0
        links[slot].hash = hash
        count += 1
        let isKnown = policy == .s3fifo && ghosts.remove(hash)
        link(slot, to: policy == .s3fifo && !isKnown ? Self.small : Self.main)
        if policy == .lfu { countTowardsAging() }
    }

    @usableFromInline mutating func touch(_ slot: Int) {
        switch policy {
        case .fifo: break
        case .lru: move(slot, to: Self.main)
        case .sieve: links[slot].frequency = 1
        case .s3fifo: links[slot].frequency = min(3, links[slot].frequency + 1)
        case .lfu:
            let next = min(Self.frequencyMaximum, Int(links[slot].list) + 1)
            move(slot, to: next)
            countTowardsAging()
        }
    }

    @usableFromInline mutating func remove(_ slot: Int) {
        unlink(slot)
        count -= 1
    }

    /// The slot that leaves next. It stays until it is removed.
    @usableFromInline mutating func victim() -> Int? {
        guard count > 0 else { return nil }
        switch policy {
        case .lru, .fifo: return Int(lists[Self.main].oldest)
        case .lfu: return lists.first { $0.count > 0 }.map { Int($0.oldest) }
        case .sieve: return sieve()
        case .s3fifo: return s3fifo()
        }
    }

    // MARK: Policies

    private mutating func sieve() -> Int {
        var current = hand >= 0 ? hand : lists[Self.main].oldest
        while links[Int(current)].frequency > 0 {
            links[Int(current)].frequency = 0
            current = links[Int(current)].newer >= 0 ? links[Int(current)].newer : lists[Self.main].oldest
        }
        hand = links[Int(current)].newer
        return Int(current)
    }

    private mutating func s3fifo() -> Int {
        while true {
            if lists[Self.small].count > count / 10 || lists[Self.main].count == 0 {
                let slot = Int(lists[Self.small].oldest)
                guard links[slot].frequency > 1 else {
                    ghosts.add(links[slot].hash, countMaximum: count)
                    return slot
                }
                links[slot].frequency = 0
                move(slot, to: Self.main)
            } else {
                let slot = Int(lists[Self.main].oldest)
                guard links[slot].frequency > 0 else { return slot }
                links[slot].frequency -= 1
                move(slot, to: Self.main)
            }
        }
    }

    private mutating func countTowardsAging() {
        touches += 1
        if touches > 8 * max(16, count) { age() }
    }

    /// Halves all frequencies: yesterday's favourites leave.
    private mutating func age() {
        touches = 0
        for frequency in 1...Self.frequencyMaximum {
            while lists[frequency].count > 0 { move(Int(lists[frequency].oldest), to: frequency / 2) }
        }
    }

    // MARK: Lists

    private mutating func move(_ slot: Int, to list: Int) {
        unlink(slot)
        link(slot, to: list)
    }

    private mutating func link(_ slot: Int, to list: Int) {
        links[slot].list = Int8(list)
        links[slot].newer = -1
        links[slot].older = lists[list].newest
        if lists[list].newest >= 0 {
            links[Int(lists[list].newest)].newer = Int32(slot)
        } else {
            lists[list].oldest = Int32(slot)
        }
        lists[list].newest = Int32(slot)
        lists[list].count += 1
    }

    private mutating func unlink(_ slot: Int) {
        let (newer, older, list) = (links[slot].newer, links[slot].older, Int(links[slot].list))
        if hand == Int32(slot) { hand = newer }
        if newer >= 0 { links[Int(newer)].older = older } else { lists[list].newest = older }
        if older >= 0 { links[Int(older)].newer = newer } else { lists[list].oldest = newer }
        lists[list].count -= 1
    }
}

/// Hashes of keys that have left, oldest first: whoever comes back soon was let go too early.
struct GhostQueue {
    private var hashes: Set<Int> = []
    private var order: [Int] = []
    private var first = 0

    mutating func add(_ hash: Int, countMaximum: Int) {
        guard hashes.insert(hash).inserted else { return }
        order.append(hash)
        while hashes.count > max(1, countMaximum), first < order.count {
            hashes.remove(order[first])
            first += 1
        }
        // What was taken from the front is given back once it is most of the array.
        if first > 64, first > order.count / 2 {
            order.removeFirst(first)
            first = 0
        }
    }

    mutating func remove(_ hash: Int) -> Bool { hashes.remove(hash) != nil }
}
