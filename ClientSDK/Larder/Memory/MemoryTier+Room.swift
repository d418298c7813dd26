public import LarderTime
public import Synchronization

// How room is made. Sums are raised by whoever adds, and then compared with the limits as they are then: of several who add at
// once, the last sees that it is too much. The same holds between adding and new limits, because all of it is in one order.
extension MemoryTier {
    @inlinable @inline(__always) func number(_ hash: UInt64) -> Int { Int(truncatingIfNeeded: hash >> 48) & mask }

    @inlinable @inline(__always) func shard(_ number: Int) -> UnsafeMutablePointer<Mutex<Shard>> {
        unsafe (shards + number * Self.stride).assumingMemoryBound(to: Mutex<Shard>.self)
    }

    /// What there is too much of, if so much more comes.
    @inlinable func excess(adding count: Int = 0, cost: Int = 0) -> Reason? {
        if countTotal.load(ordering: .sequentiallyConsistent) + count
            > countLimit.load(ordering: .sequentiallyConsistent)
        {
            return .count
        }
        // Unsigned: several costs that are each as large as can be may meet.
        let sum = UInt(bitPattern: costTotal.load(ordering: .sequentiallyConsistent) &+ cost)
        return sum > UInt(bitPattern: costLimit.load(ordering: .sequentiallyConsistent)) ? .cost : nil
    }

    @inlinable func add(_ count: Int, cost: Int) {
        if count != 0 { countTotal.wrappingAdd(count, ordering: .sequentiallyConsistent) }
        if cost != 0 { costTotal.wrappingAdd(cost, ordering: .sequentiallyConsistent) }
    }

    /// Takes an entry that has left off the sums.
    @inlinable func count(_ departure: Departure) -> Departure {
        add(-1, cost: 0 &- departure.cost)
        return departure
    }

    /// Keeps a value in the part that its key belongs to, and makes room for it as far as that is this part's to do.
    ///
    /// The entry is made where it is kept, so that key and value are retained once.
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
        // Otherwise all parts give, once this lock is free.
        if mask == 0 || (shard.count >= Self.fewEntries && cost <= mayCost / (4 * mask)) {
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

    /// Lets the other parts give in turn, until the limits hold.
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
        // The others have nothing left. Who has just come is the last one to leave.
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
            // Each part gives its share; where nothing is to be left, all.
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

    /// Removes an entry whose time was found to be over.
    @inlinable @inline(never) func removeExpired(_ key: Key, _ hash: UInt64) {
        let departure = unsafe shard(number(hash)).pointee.withLock { shard -> Departure? in
            guard let slot = shard.slot(key, UInt32(truncatingIfNeeded: hash)) else { return nil }
            // Somebody may have stored it anew.
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
