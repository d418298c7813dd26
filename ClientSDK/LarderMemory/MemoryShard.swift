/// A part of a memory tier: the entries whose hashes belong to it. A value without a lock.
///
/// Declarations are inlinable so that the compiler of a user's module specialises them: otherwise a hit would cost eight times as
/// much.
@usableFromInline struct MemoryShard<Key: Hashable & Sendable, Value: Sendable>: ~Copyable {
    @usableFromInline typealias Departure = MemoryTier<Key, Value>.Departure
    @usableFromInline typealias Reason = MemoryTier<Key, Value>.Reason

    @usableFromInline struct Entry: Sendable {
        @usableFromInline var key: Key
        @usableFromInline var value: Value
        @usableFromInline var expires: Int64
        @usableFromInline var cost: Int
        @usableFromInline var hash: UInt32

        @inlinable init(key: Key, value: Value, expires: Int64, cost: Int, hash: UInt32) {
            self.key = key
            self.value = value
            self.expires = expires
            self.cost = cost
            self.hash = hash
        }
    }

    /// Counters of everything but reads. Words instead of a dictionary, because every store counts.
    @usableFromInline struct Tally {
        @usableFromInline var stores = 0
        @usableFromInline var count = 0
        @usableFromInline var cost = 0
        @usableFromInline var expired = 0
        @usableFromInline var replaced = 0
        @usableFromInline var removed = 0
        @usableFromInline var pressure = 0

        @inlinable init() {}
    }

    // The fields that a hit needs come first: they share a cache line with the lock, and only that line moves between processors.
    @usableFromInline var hits = 0
    @usableFromInline var misses = 0
    @usableFromInline var index = SlotIndex()
    @usableFromInline var entries = Slab<Entry>(capacity: 1)
    @usableFromInline var queue: EvictionQueue
    /// The number of slots ever used, and the free ones among them.
    @usableFromInline var slotCount = 0
    @usableFromInline var free: [Int32] = []
    @usableFromInline var tally = Tally()

    @inlinable init(_ policy: EvictionPolicy) { queue = EvictionQueue(policy) }

    @inlinable deinit {
        for position in 0...index.mask where index.buckets[position] != 0 {
            entries.release(SlotIndex.slot(index.buckets[position]))
        }
    }

    @inlinable var count: Int { index.count }

    /// The slot of a key; nil if there is none.
    @inlinable @inline(__always) func slot(_ key: Key, _ hash: UInt32) -> Int? {
        var position = Int(hash) & index.mask
        while true {
            let bucket = index.buckets[position]
            if bucket == 0 { return nil }
            if SlotIndex.hash(bucket) == hash {
                let slot = SlotIndex.slot(bucket)
                if entries[slot].key == key { return slot }
            }
            position = (position + 1) & index.mask
        }
    }

    /// Inserts an entry under a new key.
    @inlinable mutating func insert(_ entry: consuming Entry, score: Double) {
        let hash = entry.hash
        let slot: Int
        if let last = free.popLast() {
            slot = Int(last)
        } else {
            slot = slotCount
            if slot == entries.capacity { grow() }
            slotCount += 1
        }
        entries.fill(slot, entry)
        index.insert(slot, hash: hash)
        queue.insert(slot, hash: hash, score: score)
        tally.stores += 1
    }

    /// Removes an entry that another one with the same key is about to replace (`refill`).
    @inlinable mutating func vacate(_ slot: Int) -> Departure {
        let old = entries.empty(slot)
        queue.remove(slot)
        tally.replaced += 1
        return Departure(key: old.key, value: old.value, cost: old.cost, expires: old.expires, reason: .replaced)
    }

    /// Inserts an entry, as the newest, in place of one with the same key.
    @inlinable mutating func refill(_ slot: Int, _ entry: consuming Entry, score: Double) {
        let hash = entry.hash
        entries.fill(slot, entry)
        queue.insert(slot, hash: hash, score: score)
        tally.stores += 1
    }

    @inlinable mutating func grow() {
        let capacity = max(16, 2 * entries.capacity)
        precondition(capacity <= Int(Int32.max), "A part of a memory tier holds at most 2^31 - 1 entries.")
        entries.grow(to: capacity, moving: slotCount)
        queue.grow(to: capacity)
    }

    /// Evicts the next entry; nil if there is none.
    @inlinable mutating func evict(_ reason: Reason) -> Departure? {
        guard let slot = queue.victim() else { return nil }
        return remove(slot, reason)
    }

    @inlinable mutating func remove(_ slot: Int, _ reason: Reason) -> Departure {
        let entry = entries.empty(slot)
        free.append(Int32(truncatingIfNeeded: slot))
        index.remove(slot, hash: entry.hash)
        queue.remove(slot)
        switch reason {
        case .count: tally.count += 1
        case .cost: tally.cost += 1
        case .expired: tally.expired += 1
        case .replaced: tally.replaced += 1
        case .removed: tally.removed += 1
        case .pressure: tally.pressure += 1
        }
        return Departure(key: entry.key, value: entry.value, cost: entry.cost, expires: entry.expires, reason: reason)
    }

    /// The slots of the chosen entries.
    @inlinable func slots(where isChosen: (borrowing Entry) -> Bool) -> [Int] {
        var slots: [Int] = []
        for position in 0...index.mask where index.buckets[position] != 0 {
            let slot = SlotIndex.slot(index.buckets[position])
            if isChosen(entries[slot]) { slots.append(slot) }
        }
        return slots
    }

    /// Adds the counters of this part to a sum.
    @usableFromInline func add(to sum: inout MemoryTier<Key, Value>.Statistics) {
        sum.hits += hits
        sum.misses += misses
        sum.stores += tally.stores
        let departures: [(Reason, Int)] = [
            (.count, tally.count), (.cost, tally.cost), (.expired, tally.expired), (.replaced, tally.replaced),
            (.removed, tally.removed), (.pressure, tally.pressure),
        ]
        for (reason, number) in departures where number > 0 { sum.departures[reason, default: 0] += number }
    }
}
