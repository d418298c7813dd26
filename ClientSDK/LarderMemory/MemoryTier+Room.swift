public import LarderTime
public import Synchronization

// Making room. Sums are raised first and compared with the limits afterwards: of several threads that add at once, the last sees
// the excess. The same holds between adding and new limits, because all operations are in one order.
extension MemoryTier {
    @inlinable @inline(__always) func number(_ hash: UInt64) -> Int { Int(truncatingIfNeeded: hash >> 48) & mask }

    @inlinable @inline(__always) func shard(_ number: Int) -> UnsafeMutablePointer<Mutex<Shard>> {
        unsafe (shards + number * Self.stride).assumingMemoryBound(to: Mutex<Shard>.self)
    }

    /// The limit that is exceeded after adding a count and a cost; nil if none is.
    @inlinable func excess(adding count: Int = 0, cost: Int = 0) -> Reason? {
        if countTotal.load(ordering: .sequentiallyConsistent) + count
            > countLimit.load(ordering: .sequentiallyConsistent)
        {
            return .count
        }
        // Unsigned: the sum of several maximal costs may overflow `Int`.
        let sum = UInt(bitPattern: costTotal.load(ordering: .sequentiallyConsistent) &+ cost)
        return sum > UInt(bitPattern: costLimit.load(ordering: .sequentiallyConsistent)) ? .cost : nil
    }

    @inlinable func add(_ count: Int, cost: Int) {
        if count != 0 { countTotal.wrappingAdd(count, ordering: .sequentiallyConsistent) }
        if cost != 0 { costTotal.wrappingAdd(cost, ordering: .sequentiallyConsistent) }
    }

    /// Subtracts a removed entry from the sums.
    @inlinable func count(_ departure: Departure) -> Departure {
        add(-1, cost: 0 &- departure.cost)
        return departure
    }

    /// Stores a value in the part of its key, and makes room in this part.
    ///
    /// The entry is created in place, so that key and value are retained once.
    @inlinable func put(
        _ value: Value,
        _ key: Key,
        _ cost: Int,
        _ expires: Int64,
        _ hash: UInt32,
        _ score: Double,
        _ shard: inout Shard
    ) -> Departures {
        var departures = Departures()
        let old = shard.slot(key, hash)
        let mayCost = costLimit.load(ordering: .sequentiallyConsistent)
        guard expires > .min, countLimit.load(ordering: .sequentiallyConsistent) > 0, mayCost > 0, cost <= mayCost
        else {
            if let old { departures.append(count(shard.remove(old, .replaced))) }
            return departures
        }
        var addedCount = 1
        var addedCost = cost
        if let old {
            let departure = shard.vacate(old)
            addedCount = 0
            addedCost -= departure.cost
            departures.append(departure)
        }
        // Otherwise all parts make room, after this lock is released.
        if mask == 0 || (shard.count >= Self.smallPartMaximum && cost <= mayCost / (4 * mask)) {
            while let reason = excess(adding: addedCount, cost: addedCost), let departure = shard.evict(reason) {
                addedCount -= 1
                addedCost -= departure.cost
                departures.append(departure)
            }
        }
        if let old {
            let entry = Shard.Entry(key: key, value: value, expires: expires, cost: cost, hash: hash)
            shard.refill(old, entry, score: score)
        } else {
            shard.insert(Shard.Entry(key: key, value: value, expires: expires, cost: cost, hash: hash), score: score)
        }
        add(addedCount, cost: addedCost)
        return departures
    }

    /// Evicts from the other parts in turn until the limits hold.
    @inlinable @inline(never) func balance(around key: Key, _ hash: UInt64, _ departures: inout Departures) {
        let own = number(hash)
        var (current, idle) = (own, 0)
        while idle < mask, let reason = excess() {
            current = (current + 1) & mask
            if current == own { continue }
            let departure = unsafe shard(current).pointee.withLock { shard in shard.evict(reason).map { count($0) } }
            idle = departure == nil ? idle + 1 : 0
            if let departure { departures.append(departure) }
        }
        guard excess() != nil else { return }
        // The other parts are empty. The new entry is evicted last.
        let rest = unsafe shard(own).pointee.withLock { shard -> Departures in
            let slot = shard.slot(key, UInt32(truncatingIfNeeded: hash))
            let score = slot.map { shard.queue.score($0) } ?? 1
            if let slot { shard.queue.remove(slot) }
            var departures = Departures()
            while let reason = excess(), let departure = shard.evict(reason) { departures.append(count(departure)) }
            if let slot { shard.queue.insert(slot, hash: UInt32(truncatingIfNeeded: hash), score: score) }
            return departures
        }
        departures.append(rest)
    }

    @inlinable func trim(toCount countMaximum: Int, cost costMaximum: Int, _ reason: Reason) {
        let target = (count: max(0, countMaximum), cost: max(0, costMaximum))
        var departures = Departures()
        var (current, idle) = (0, 0)
        while idle <= mask, isMore(than: target) {
            // Each part gives its share; with a limit of zero, everything.
            let tooMany = max(0, count - target.count) / (mask + 1)
            let share = mask == 0 || target.count == 0 ? .max : max(1, tooMany)
            let gone = unsafe shard(current).pointee.withLock { shard -> Departures in
                var gone = Departures()
                var number = 0
                while number < share, isMore(than: target), let departure = shard.evict(reason) {
                    gone.append(count(departure))
                    number += 1
                }
                return gone
            }
            idle = gone.first == nil ? idle + 1 : 0
            departures.append(gone)
            current = (current + 1) & mask
        }
        tell(departures)
    }

    @inlinable func isMore(than target: (count: Int, cost: Int)) -> Bool {
        countTotal.load(ordering: .sequentiallyConsistent) > target.count
            || costTotal.load(ordering: .sequentiallyConsistent) > target.cost
    }

    /// Removes an entry with an ended lifetime.
    @inlinable @inline(never) func removeExpired(_ key: Key, _ hash: UInt64) {
        let departure = unsafe shard(number(hash)).pointee.withLock { shard -> Departure? in
            guard let slot = shard.slot(key, UInt32(truncatingIfNeeded: hash)) else { return nil }
            // The key may have been stored again.
            let expires = shard.entries[slot].expires
            guard expires != .max, clock.uptime.nanoseconds >= expires else { return nil }
            return count(shard.remove(slot, .expired))
        }
        if let departure { onDeparture?(departure) }
    }

    @inlinable func tell(_ departures: Departures) {
        guard let onDeparture, let first = departures.first else { return }
        onDeparture(first)
        for departure in departures.others { onDeparture(departure) }
    }
}
