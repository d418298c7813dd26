public import LarderTime
public import Synchronization

/// The memory tier: values by key, up to a number and a cost, each as long as it may live. Safe from any thread.
///
/// Every operation is O(1). Entries lie in arrays and are linked by index: neither a hit nor an insert with eviction allocates
/// but for what the dictionary of keys needs. What leaves is released, and told of, after the lock.
public final class MemoryTier<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    /// How much there may be.
    public struct Limits: Sendable, Hashable {
        /// How many entries; 0 or less keeps none.
        public var count: Int
        /// The sum of their costs; 0 or less keeps none.
        public var cost: Int

        /// No bound but those that are given.
        @inlinable public init(count: Int = .max, cost: Int = .max) {
            self.count = max(0, count)
            self.cost = max(0, cost)
        }
    }

    /// Why an entry left.
    public enum Reason: String, Sendable, Hashable, CaseIterable {
        /// There were too many.
        case count
        /// They cost too much.
        case cost
        /// Its time was over.
        case expired
        /// Another value took its place.
        case replaced
        /// Somebody asked for it.
        case removed
        /// Memory was short.
        case pressure
    }

    /// An entry that left: for whoever keeps it elsewhere (spills it to disk, compresses it) or only counts.
    public struct Departure: Sendable {
        /// The entry's key.
        public let key: Key
        /// Its value.
        public let value: Value
        /// Its cost.
        public let cost: Int
        /// Why it left.
        public let reason: Reason

        @inlinable init(key: Key, value: Value, cost: Int, reason: Reason) {
            self.key = key
            self.value = value
            self.cost = cost
            self.reason = reason
        }
    }

    /// What has happened so far.
    public struct Statistics: Sendable, Hashable {
        /// Reads that found their value.
        public var hits = 0
        /// Reads that did not.
        public var misses = 0
        /// Values that were stored.
        public var stores = 0
        /// How many entries left, by reason.
        public var departures: [Reason: Int] = [:]

        /// Nothing yet.
        @inlinable public init() {}

        /// The share of reads that found their value; 0 when there were none.
        public var hitRate: Double { hits + misses == 0 ? 0 : Double(hits) / Double(hits + misses) }
    }

    // What follows is visible to the compiler of a user's module, so that it can make code for the user's own types: without
    // that a hit would cost eight times as much.

    @usableFromInline struct Node {
        @usableFromInline var key: Key
        @usableFromInline var value: Value
        @usableFromInline var cost: Int
        @usableFromInline var expires: Int64

        @inlinable init(key: Key, value: Value, cost: Int, expires: Int64) {
            self.key = key
            self.value = value
            self.cost = cost
            self.expires = expires
        }
    }

    @usableFromInline struct State {
        @usableFromInline var index: [Key: Int] = [:]
        /// Nil where a slot is free.
        @usableFromInline var nodes: [Node?] = []
        @usableFromInline var free: [Int] = []
        @usableFromInline var queue: EvictionQueue
        @usableFromInline var cost = 0
        @usableFromInline var limits: Limits
        @usableFromInline var statistics = Statistics()

        @inlinable init(queue: EvictionQueue, limits: Limits) {
            self.queue = queue
            self.limits = limits
        }
    }

    @usableFromInline let state: Mutex<State>
    @usableFromInline let clock: any MonotonicClock
    @usableFromInline let onDeparture: (@Sendable (Departure) -> Void)?

    /// - Parameters:
    ///   - limits: how much there may be.
    ///   - policy: who leaves when it is full.
    ///   - clock: what lifetimes are measured by.
    ///   - onDeparture: told of every entry that leaves, after it has left and outside of all locks.
    @inlinable public init(
        limits: Limits,
        policy: EvictionPolicy = .standard,
        clock: any MonotonicClock = SystemMonotonicClock(),
        onDeparture: (@Sendable (Departure) -> Void)? = nil
    ) {
        state = Mutex(State(queue: EvictionQueue(policy), limits: limits))
        self.clock = clock
        self.onDeparture = onDeparture
    }

    // MARK: Reading

    /// The value of a key, if it is there and may still be used.
    @inlinable public subscript(key: Key) -> Value? {
        let (value, departure) = state.withLock { state -> (Value?, Departure?) in
            guard let slot = state.index[key], let node = state.nodes[slot] else {
                state.statistics.misses += 1
                return (nil, nil)
            }
            if node.expires != .max, clock.uptime.nanoseconds >= node.expires {
                state.statistics.misses += 1
                return (nil, remove(slot, .expired, &state))
            }
            state.statistics.hits += 1
            state.queue.touch(slot)
            return (node.value, nil)
        }
        if let departure { onDeparture?(departure) }
        return value
    }

    /// The value of a key as the subscript gives it, but reading it so counts for nothing: neither as a hit nor for staying.
    @inlinable public func peek(_ key: Key) -> Value? {
        state.withLock { state in
            guard let slot = state.index[key], let node = state.nodes[slot] else { return nil }
            return node.expires != .max && clock.uptime.nanoseconds >= node.expires ? nil : node.value
        }
    }

    /// The keys of all entries, in no order. Cost: it looks at all of them.
    @inlinable public var keys: [Key] { state.withLock { Array($0.index.keys) } }

    /// How many entries there are, those whose time is over and that nobody has asked for since among them.
    public var count: Int { state.withLock { $0.index.count } }

    /// The sum of the costs of what is there.
    public var cost: Int { state.withLock { $0.cost } }

    /// What has happened so far.
    public var statistics: Statistics { state.withLock { $0.statistics } }

    // MARK: Writing

    /// Keeps a value; what must make room for it leaves.
    ///
    /// - Parameters:
    ///   - cost: what it counts against the limit; less than 0 counts as 0. A value that costs more than all may is not kept.
    ///   - lifetime: how long it may be used; nil for as long as it stays, nothing or less for not at all.
    @inlinable public func store(_ value: Value, for key: Key, cost: Int = 1, lifetime: Duration? = nil) {
        let cost = max(0, cost)
        let expires = lifetime.map { (clock.uptime + $0).nanoseconds } ?? .max
        let isUsable = lifetime.map { $0 > .zero } ?? true
        let departures = state.withLock { state -> [Departure] in
            var departures: [Departure] = []
            if let slot = state.index[key] { departures.append(remove(slot, .replaced, &state)) }
            guard isUsable, state.limits.count > 0, state.limits.cost > 0, cost <= state.limits.cost else {
                return departures
            }
            state.statistics.stores += 1
            while state.index.count >= state.limits.count {
                guard let departure = evict(.count, &state) else { break }
                departures.append(departure)
            }
            while state.cost > state.limits.cost - cost {
                guard let departure = evict(.cost, &state) else { break }
                departures.append(departure)
            }
            let node = Node(key: key, value: value, cost: cost, expires: expires)
            let slot: Int
            if let free = state.free.popLast() {
                slot = free
                state.nodes[slot] = node
            } else {
                slot = state.nodes.count
                state.nodes.append(node)
            }
            state.index[key] = slot
            state.cost += cost
            state.queue.insert(slot, hash: key.hashValue)
            return departures
        }
        tell(departures)
    }

    /// Removes a value; returns it if it was there.
    @discardableResult @inlinable public func remove(_ key: Key) -> Value? {
        let departure = state.withLock { state in state.index[key].map { remove($0, .removed, &state) } }
        if let departure { onDeparture?(departure) }
        return departure?.value
    }

    /// Removes everything.
    @inlinable public func removeAll() { trim(toCount: 0, cost: 0, .removed) }

    /// Removes what is more than so much, as when memory is short.
    @inlinable public func trim(toCount count: Int = .max, cost: Int = .max) {
        trim(toCount: count, cost: cost, .pressure)
    }

    /// Changes how much there may be; what is too much leaves at once.
    @inlinable public func setLimits(_ limits: Limits) {
        state.withLock { $0.limits = limits }
        trim(toCount: limits.count, cost: limits.cost, .cost)
    }

    /// Removes every entry whose time is over. Cost: it looks at all of them.
    @inlinable public func removeExpired() {
        let now = clock.uptime.nanoseconds
        let departures = state.withLock { state in
            let slots = state.nodes.indices.filter { state.nodes[$0].map { $0.expires <= now } ?? false }
            return slots.map { remove($0, .expired, &state) }
        }
        tell(departures)
    }

    // MARK: Inside

    @inlinable func trim(toCount count: Int, cost: Int, _ reason: Reason) {
        let departures = state.withLock { state -> [Departure] in
            var departures: [Departure] = []
            while state.index.count > max(0, count) || state.cost > max(0, cost) {
                guard let departure = evict(reason, &state) else { break }
                departures.append(departure)
            }
            return departures
        }
        tell(departures)
    }

    @inlinable func evict(_ reason: Reason, _ state: inout State) -> Departure? {
        guard let slot = state.queue.victim() else { return nil }
        return remove(slot, reason, &state)
    }

    @inlinable func remove(_ slot: Int, _ reason: Reason, _ state: inout State) -> Departure {
        guard let node = state.nodes[slot] else { preconditionFailure("A slot in use holds an entry.") }
        state.nodes[slot] = nil
        state.free.append(slot)
        state.index[node.key] = nil
        state.cost -= node.cost
        state.queue.remove(slot)
        state.statistics.departures[reason, default: 0] += 1
        return Departure(key: node.key, value: node.value, cost: node.cost, reason: reason)
    }

    @inlinable func tell(_ departures: [Departure]) {
        guard let onDeparture else { return }
        for departure in departures { onDeparture(departure) }
    }
}
