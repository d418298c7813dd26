public import LarderTime
public import Synchronization

/// The memory tier: values by key, up to a number and a cost, each as long as it may live. Safe from any thread.
///
/// Every operation is O(1) but for those that say otherwise. Entries lie in slabs and are linked by index, a hash is computed
/// once for each call, and neither a hit nor an insert with eviction allocates. What leaves is released, and told of, after the
/// lock.
///
/// A tier that is made for 4,096 entries or more is divided by hash into sixteen parts, each with a lock and an order of its own,
/// so that threads seldom meet. The limits are those of the whole and are kept exactly, but for as many entries as threads are
/// storing at the very moment; who leaves is who the policy says within the part of the one who came, or, where parts hold few
/// entries or what came is large, within each part in turn. A smaller tier, and one that is limited by cost alone, is one part.
@safe public final class MemoryTier<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    @usableFromInline typealias Shard = MemoryShard<Key, Value>

    /// A part's room in memory, so that no cache line is two parts'.
    @inlinable static var stride: Int { (MemoryLayout<Mutex<Shard>>.stride + 127) & ~127 }

    /// With fewer entries than this in a part, all parts take turns in giving.
    @inlinable static var fewEntries: Int { 32 }

    /// The parts. `nonisolated(unsafe)`: the pointer is a constant, what it points to is a `Mutex` for each part, so nothing behind
    /// it is reached but under a lock; it is given back by `deinit` alone, when nobody has the tier any more.
    @usableFromInline nonisolated(unsafe) let shards: UnsafeMutableRawPointer
    /// One less than the number of parts, which is a power of two.
    @usableFromInline let mask: Int
    @usableFromInline let seed: UInt64
    @usableFromInline let clock: any MonotonicClock
    @usableFromInline let onDeparture: (@Sendable (Departure) -> Void)?
    // Sums over all parts. They are changed within the lock of the part that changes, and only if they change.
    @usableFromInline let countTotal = Atomic<Int>(0)
    @usableFromInline let costTotal = Atomic<Int>(0)
    @usableFromInline let countLimit: Atomic<Int>
    @usableFromInline let costLimit: Atomic<Int>

    /// - Parameters:
    ///   - limits: how much there may be.
    ///   - policy: who leaves when it is full.
    ///   - clock: what lifetimes are measured by.
    ///   - onDeparture: told of every entry that leaves, after it has left and outside of all locks.
    @inlinable public convenience init(
        limits: Limits,
        policy: EvictionPolicy = .standard,
        clock: any MonotonicClock = SystemMonotonicClock(),
        onDeparture: (@Sendable (Departure) -> Void)? = nil
    ) {
        let isLarge = limits.count >= 4_096 && limits.count < .max
        self.init(limits: limits, policy: policy, clock: clock, shardBits: isLarge ? 4 : 0, onDeparture: onDeparture)
    }

    /// - Parameter shardBits: the binary logarithm of the number of parts.
    @inlinable init(
        limits: Limits,
        policy: EvictionPolicy,
        clock: any MonotonicClock,
        shardBits: Int,
        onDeparture: (@Sendable (Departure) -> Void)?
    ) {
        mask = (1 << shardBits) - 1
        seed = KeyHash.seed()
        unsafe shards = UnsafeMutableRawPointer.allocate(byteCount: Self.stride << shardBits, alignment: 128)
        self.clock = clock
        self.onDeparture = onDeparture
        countLimit = Atomic(limits.count)
        costLimit = Atomic(limits.cost)
        for number in 0...mask { unsafe shard(number).initialize(to: Mutex(Shard(policy))) }
    }

    @inlinable deinit {
        for number in 0...mask { unsafe shard(number).deinitialize(count: 1) }
        unsafe shards.deallocate()
    }

    // MARK: Reading

    /// The value of a key, if it is there and may still be used.
    @inlinable public subscript(key: Key) -> Value? {
        let hash = KeyHash.of(key, seed)
        var isExpired = false
        let value = unsafe shard(number(hash)).pointee.withLock { shard -> Value? in
            guard let slot = shard.slot(key, UInt32(truncatingIfNeeded: hash)) else {
                shard.misses += 1
                return nil
            }
            let expires = shard.entries[slot].expires
            if expires != .max, clock.uptime.nanoseconds >= expires {
                shard.misses += 1
                isExpired = true
                return nil
            }
            shard.hits += 1
            shard.queue.touch(slot)
            return shard.entries[slot].value
        }
        if isExpired { removeExpired(key, hash) }
        return value
    }

    /// The value of a key as the subscript gives it, but reading it so counts for nothing: neither as a hit nor for staying.
    @inlinable public func peek(_ key: Key) -> Value? {
        let hash = KeyHash.of(key, seed)
        return unsafe shard(number(hash)).pointee.withLock { shard -> Value? in
            guard let slot = shard.slot(key, UInt32(truncatingIfNeeded: hash)) else { return nil }
            let expires = shard.entries[slot].expires
            return expires != .max && clock.uptime.nanoseconds >= expires ? nil : shard.entries[slot].value
        }
    }

    /// The keys of all entries, in no order. Cost: it looks at all of them.
    @inlinable public var keys: [Key] {
        var keys: [Key] = []
        for number in 0...mask {
            keys += unsafe shard(number).pointee.withLock { shard in
                shard.slots { _ in true }.map { shard.entries[$0].key }
            }
        }
        return keys
    }

    /// How many entries there are, those whose time is over and that nobody has asked for since among them.
    public var count: Int { countTotal.load(ordering: .sequentiallyConsistent) }

    /// The sum of the costs of what is there.
    public var cost: Int { costTotal.load(ordering: .sequentiallyConsistent) }

    /// What has happened so far.
    public var statistics: Statistics {
        var sum = Statistics()
        for number in 0...mask { unsafe shard(number).pointee.withLock { $0.add(to: &sum) } }
        return sum
    }

    // MARK: Writing

    /// Keeps a value; what must make room for it leaves.
    ///
    /// - Parameters:
    ///   - cost: what it counts against the limit; less than 0 counts as 0. A value that costs more than all may is not kept.
    ///   - lifetime: how long it may be used; nil for as long as it stays, nothing or less for not at all.
    ///   - score: what it is worth for its size, in any unit: what it takes to get it again, divided by its cost. Only
    ///     `EvictionPolicy.greedyDual` asks, to the nearest power of two between 2⁻³² and 2³¹.
    @inlinable public func store(
        _ value: Value,
        for key: Key,
        cost: Int = 1,
        lifetime: Duration? = nil,
        score: Double = 1
    ) {
        let hash = KeyHash.of(key, seed)
        let expires = expiry(lifetime)
        var departures = unsafe shard(number(hash)).pointee.withLock { shard in
            put(value, key, max(0, cost), expires, UInt32(truncatingIfNeeded: hash), score, &shard)
        }
        if mask > 0, excess() != nil { balance(around: key, hash, &departures) }
        tell(departures)
    }

    @inlinable @inline(__always) func expiry(_ lifetime: Duration?) -> Int64 {
        guard let lifetime else { return .max }
        return lifetime > .zero ? (clock.uptime + lifetime).nanoseconds : .min
    }

    /// Removes a value; returns it if it was there.
    @discardableResult @inlinable public func remove(_ key: Key) -> Value? {
        let hash = KeyHash.of(key, seed)
        let departure = unsafe shard(number(hash)).pointee.withLock { shard -> Departure? in
            guard let slot = shard.slot(key, UInt32(truncatingIfNeeded: hash)) else { return nil }
            return count(shard.remove(slot, .removed))
        }
        if let departure { onDeparture?(departure) }
        return departure?.value
    }

    /// Removes everything.
    @inlinable public func removeAll() { trim(toCount: 0, cost: 0, .removed) }

    /// Removes what is more than so much, as when memory is short.
    @inlinable public func trim(toCount count: Int = .max, cost: Int = .max) {
        trim(toCount: count, cost: cost, .pressure)
    }

    /// Changes how much there may be; what is too much leaves at once. The number of parts stays.
    @inlinable public func setLimits(_ limits: Limits) {
        countLimit.store(limits.count, ordering: .sequentiallyConsistent)
        costLimit.store(limits.cost, ordering: .sequentiallyConsistent)
        trim(toCount: limits.count, cost: limits.cost, .cost)
    }

    /// Removes every entry whose time is over. Cost: it looks at all of them.
    @inlinable public func removeExpired() {
        let now = clock.uptime.nanoseconds
        for number in 0...mask {
            tell(
                unsafe shard(number).pointee.withLock { shard -> Departures in
                    var departures = Departures()
                    for slot in shard.slots(where: { $0.expires <= now }) {
                        departures.append(count(shard.remove(slot, .expired)))
                    }
                    return departures
                }
            )
        }
    }
}
