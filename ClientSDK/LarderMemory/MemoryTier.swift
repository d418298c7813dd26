public import LarderTime
public import Synchronization

/// An in-memory cache: values by key, limited by count and cost, each with an optional lifetime. Safe from any thread.
///
/// Every operation is O(1) unless stated otherwise. Entries are stored in slabs and linked by index, a hash is computed once per
/// call, and neither a hit nor an insert with eviction allocates. Removed entries are released and reported after the lock.
///
/// A tier for 4,096 entries or more is divided by hash into sixteen parts, each with its own lock and order, so that threads seldom
/// compete. The limits apply to the whole and are kept exactly, except for entries that other threads are storing at the same
/// moment; the policy selects within the part of the new entry, or, if parts hold few entries or the new one is large, within each
/// part in turn. A smaller tier, and one that is limited by cost alone, has one part.
///
/// ```swift
/// let tier = MemoryTier<String, [UInt8]>(limits: .init(count: 1_000, cost: 16 << 20))
/// tier.store([1, 2, 3], for: "a", cost: 3)
/// print(tier["a"]?.count ?? 0)
/// ```
@safe public final class MemoryTier<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    @usableFromInline typealias Shard = MemoryShard<Key, Value>

    /// The size of a part in memory, so that no two parts share a cache line.
    @inlinable static var stride: Int { (MemoryLayout<Mutex<Shard>>.stride + 127) & ~127 }

    /// With fewer entries than this in a part, all parts evict in turn.
    @inlinable static var smallPartMaximum: Int { 32 }

    /// The parts. `nonisolated(unsafe)`: the pointer is constant and points to one `Mutex` for each part, so that everything behind
    /// it is accessed under a lock; it is deallocated by `deinit` alone, when there is no other reference.
    @usableFromInline nonisolated(unsafe) let shards: UnsafeMutableRawPointer
    /// The number of parts, which is a power of two, minus one.
    @usableFromInline let mask: Int
    @usableFromInline let seed: UInt64
    /// Hashes keys with the seed; nil for `KeyHash.of`.
    @usableFromInline let hash: (@Sendable (Key, UInt64) -> UInt64)?
    @usableFromInline let clock: any MonotonicClock
    @usableFromInline let onDeparture: (@Sendable (Departure) -> Void)?
    // Sums over all parts, changed under the lock of the part that changes.
    @usableFromInline let countTotal = Atomic<Int>(0)
    @usableFromInline let costTotal = Atomic<Int>(0)
    @usableFromInline let countLimit: Atomic<Int>
    @usableFromInline let costLimit: Atomic<Int>

    /// - Parameters:
    ///   - limits: the limits of the tier.
    ///   - policy: selects the entry to evict.
    ///   - clock: used for lifetimes.
    @inlinable public convenience init(
        limits: Limits,
        policy: EvictionPolicy = .adaptive,
        clock: any MonotonicClock = SystemMonotonicClock()
    ) {
        self.init(limits: limits, policy: policy, clock: clock, onDeparture: nil)
    }

    /// - Parameter onDeparture: called with every removed entry, while no lock is held.
    @inlinable package convenience init(
        limits: Limits,
        policy: EvictionPolicy = .adaptive,
        clock: any MonotonicClock = SystemMonotonicClock(),
        onDeparture: (@Sendable (Departure) -> Void)?
    ) {
        let isLarge = limits.count >= 4_096 && limits.count < .max
        self.init(
            limits: limits,
            policy: policy,
            clock: clock,
            shardBits: isLarge ? 4 : 0,
            hash: nil,
            onDeparture: onDeparture
        )
    }

    /// A tier of the default policy with its own hash function, which gets a key and a seed drawn by the process.
    @inlinable package convenience init(
        limits: Limits,
        clock: any MonotonicClock,
        hash: @escaping @Sendable (Key, UInt64) -> UInt64,
        onDeparture: @escaping @Sendable (Departure) -> Void
    ) {
        let isLarge = limits.count >= 4_096 && limits.count < .max
        self.init(
            limits: limits,
            policy: .adaptive,
            clock: clock,
            shardBits: isLarge ? 4 : 0,
            hash: hash,
            onDeparture: onDeparture
        )
    }

    /// - Parameter shardBits: the binary logarithm of the number of parts.
    @inlinable init(
        limits: Limits,
        policy: EvictionPolicy,
        clock: any MonotonicClock,
        shardBits: Int,
        hash: (@Sendable (Key, UInt64) -> UInt64)? = nil,
        onDeparture: (@Sendable (Departure) -> Void)?
    ) {
        mask = (1 << shardBits) - 1
        seed = KeyHash.seed()
        self.hash = hash
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

    @inlinable @inline(__always) func hash(of key: Key) -> UInt64 {
        if let hash { hash(key, seed) } else { KeyHash.of(key, seed) }
    }

    // MARK: Reading

    /// The value of a key; nil if there is none or its lifetime has ended.
    @inlinable public subscript(key: Key) -> Value? {
        let hash = hash(of: key)
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
            shard.queue.touch(slot, hash: UInt32(truncatingIfNeeded: hash))
            return shard.entries[slot].value
        }
        if isExpired { removeExpired(key, hash) }
        return value
    }

    /// Like the subscript, but counts neither as a hit nor as a use.
    @inlinable public func peek(_ key: Key) -> Value? {
        let hash = hash(of: key)
        return unsafe shard(number(hash)).pointee.withLock { shard -> Value? in
            guard let slot = shard.slot(key, UInt32(truncatingIfNeeded: hash)) else { return nil }
            let expires = shard.entries[slot].expires
            return expires != .max && clock.uptime.nanoseconds >= expires ? nil : shard.entries[slot].value
        }
    }

    /// The keys of all entries, in no order. O(n).
    @inlinable public var keys: [Key] {
        var keys: [Key] = []
        for number in 0...mask {
            keys += unsafe shard(number).pointee.withLock { shard in
                shard.slots { _ in true }.map { shard.entries[$0].key }
            }
        }
        return keys
    }

    /// The number of entries, including those with an ended lifetime that were not read since.
    public var count: Int { countTotal.load(ordering: .sequentiallyConsistent) }

    /// The sum of the costs of all entries.
    public var cost: Int { costTotal.load(ordering: .sequentiallyConsistent) }

    /// The counters.
    package var statistics: Statistics {
        var sum = Statistics()
        for number in 0...mask { unsafe shard(number).pointee.withLock { $0.add(to: &sum) } }
        return sum
    }

    // MARK: Writing

    /// Stores a value and evicts entries to make room.
    ///
    /// - Parameters:
    ///   - value: the value to store.
    ///   - key: its key. A value under the same key is replaced.
    ///   - cost: counted against the limit; less than 0 counts as 0. A value that costs more than the limit is not stored.
    ///   - lifetime: the time for which it may be used; nil for no end, zero or less stores nothing.
    ///   - score: the effort to get it again divided by its cost, in any unit. Used by `EvictionPolicy.greedyDual` only, to the
    ///     nearest power of two between 2⁻³² and 2³¹.
    @inlinable public func store(
        _ value: Value,
        for key: Key,
        cost: Int = 1,
        lifetime: Duration? = nil,
        score: Double = 1
    ) {
        let hash = hash(of: key)
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
        let hash = hash(of: key)
        let departure = unsafe shard(number(hash)).pointee.withLock { shard -> Departure? in
            guard let slot = shard.slot(key, UInt32(truncatingIfNeeded: hash)) else { return nil }
            return count(shard.remove(slot, .removed))
        }
        if let departure { onDeparture?(departure) }
        return departure?.value
    }

    /// Removes everything.
    @inlinable public func removeAll() { trim(toCount: 0, cost: 0, .removed) }

    /// Evicts entries down to a count and a cost, as under memory pressure.
    @inlinable public func trim(toCount count: Int = .max, cost: Int = .max) {
        trim(toCount: count, cost: cost, .pressure)
    }

    /// Changes the limits; the excess is evicted at once. The number of parts stays.
    @inlinable public func setLimits(_ limits: Limits) {
        countLimit.store(limits.count, ordering: .sequentiallyConsistent)
        costLimit.store(limits.cost, ordering: .sequentiallyConsistent)
        trim(toCount: limits.count, cost: limits.cost, .cost)
    }

    /// Removes all entries with an ended lifetime. O(n).
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
