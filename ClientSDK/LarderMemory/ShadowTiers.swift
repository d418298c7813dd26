/// Tiers without values that show the hit rate of each eviction rule on a sample of the keys.
///
/// A tier of a fraction of the size has about the same hit rate on the same fraction of the keys, chosen by hash (Waldspurger et al.:
/// Cache Modeling and Optimization using Miniature Simulations, USENIX ATC 2017). Keys with equal hashes are one. A key has the same
/// slot in all three tiers, so that it is looked up once.
struct ShadowTiers: ~Copyable {
    /// The tiers that have a key, or that had it before a use.
    struct Hits: OptionSet {
        let rawValue: UInt8

        static let recency = Hits(rawValue: 1)
        static let quickDemotion = Hits(rawValue: 2)
        static let frequency = Hits(rawValue: 4)
        static let all: Hits = [.recency, .quickDemotion, .frequency]
    }

    private var index = SlotIndex()
    private var recency = EvictionOrder(.recency, mayChange: false)
    private var quickDemotion = EvictionOrder(.quickDemotion, mayChange: false)
    private var frequency = EvictionOrder(.frequency, mayChange: false)
    /// The tiers that have each slot, and the hash of its key.
    private var holders = Slab<Hits>(repeating: [], count: 1)
    private var hashes = Slab<UInt32>(repeating: 0, count: 1)
    private var free: [Int32] = []
    private var slotCount = 0

    /// Uses a key, and stores it in the tiers that do not have it. Returns those that have it.
    mutating func use(_ hash: UInt32, maximum: Int, _ sketch: borrowing FrequencySketch) -> Hits {
        let slot = slot(hash) ?? newSlot(hash)
        let had = holders[slot]
        holders[slot] = .all
        if had.contains(.recency) {
            recency.touch(slot)
        } else {
            while recency.count >= maximum, let victim = recency.victim(sketch) {
                recency.remove(victim)
                release(victim, .recency)
            }
            recency.insert(slot, hash: hash)
        }
        if had.contains(.quickDemotion) {
            quickDemotion.touch(slot)
        } else {
            while quickDemotion.count >= maximum, let victim = quickDemotion.victim(sketch) {
                quickDemotion.remove(victim)
                release(victim, .quickDemotion)
            }
            quickDemotion.insert(slot, hash: hash)
        }
        if had.contains(.frequency) {
            frequency.touch(slot)
        } else {
            while frequency.count >= maximum, let victim = frequency.victim(sketch) {
                frequency.remove(victim)
                release(victim, .frequency)
            }
            frequency.insert(slot, hash: hash)
        }
        return had
    }

    private func slot(_ hash: UInt32) -> Int? {
        var position = Int(hash) & index.mask
        while index.buckets[position] != 0 {
            if SlotIndex.hash(index.buckets[position]) == hash { return SlotIndex.slot(index.buckets[position]) }
            position = (position + 1) & index.mask
        }
        return nil
    }

    private mutating func newSlot(_ hash: UInt32) -> Int {
        let slot: Int
        if let last = free.popLast() {
            slot = Int(last)
        } else {
            slot = slotCount
            slotCount += 1
            if slot == holders.capacity { grow() }
        }
        index.insert(slot, hash: hash)
        hashes[slot] = hash
        holders[slot] = []
        return slot
    }

    private mutating func grow() {
        let capacity = 2 * holders.capacity
        holders.grow(to: capacity, moving: holders.capacity)
        hashes.grow(to: capacity, moving: hashes.capacity)
        recency.grow(to: capacity)
        quickDemotion.grow(to: capacity)
        frequency.grow(to: capacity)
    }

    private mutating func release(_ slot: Int, _ holder: Hits) {
        holders[slot].remove(holder)
        guard holders[slot].isEmpty else { return }
        index.remove(slot, hash: hashes[slot])
        free.append(Int32(truncatingIfNeeded: slot))
    }
}
