public import LarderTime
import Synchronization

/// Where entries go that left a full memory tier: onto the disk, from where they come back when they are read.
///
/// Entries are encoded, compressed if a function for that is given, and written by a task in the background; an entry that
/// waits for it is read from memory. What is spilled is bounded: the oldest leaves, and of what waits the newest is dropped.
/// It belongs to this process, as the memory did that it left: what an earlier one has spilled is removed. An entry keeps its
/// cost and the end of its lifetime. Whoever spills says when another value makes the spilled one outdated (`forget`);
/// `SpillingMemoryTier` does. Safe from any thread; failures of the disk are told and lose entries, nothing else.
public final class DiskSpill<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private struct Place {
        let number: Int
        let bytes: Int
        let cost: Int
        let expiresAt: MonotonicTime
        let hasLifetime: Bool
    }

    private struct Waiting {
        let number: Int
        let value: Value
        let cost: Int
        let expiresAt: MonotonicTime
        let hasLifetime: Bool
    }

    private enum Found {
        case waiting(Entry)
        case place(Place, ticket: Int)
    }

    private enum Job {
        case none([CheckedContinuation<Void, Never>])
        case write(Key, Waiting)
        case tidy
    }

    private struct State {
        var statistics = Statistics()
        var places: [Key: Place] = [:]
        /// In the order in which they were written; those that are not at their place any more are passed over.
        var order: [(key: Key, number: Int)] = []
        var orderStart = 0
        var waiting: [Key: Waiting] = [:]
        var waitingOrder: [(key: Key, number: Int)] = []
        var waitingCost = 0
        /// Records to be removed.
        var removals: [Int] = []
        /// Who is bringing an entry back, and whether it is still the one that is meant.
        var tickets: [Int: (key: Key, isValid: Bool)] = [:]
        var last = 0
        var isWorking = false
        var isClean = false
        var idle: [CheckedContinuation<Void, Never>] = []
    }

    private let disk: DiskStore
    private let prefix: String
    private let coding: Coding
    private let limits: Limits
    private let clock: any MonotonicClock
    private let wall: any WallClock
    private let onFailure: @Sendable (any Error) -> Void
    private let state = Mutex(State())

    /// - Parameters:
    ///   - disk: where to write. It may hold other things too; its own budget holds besides.
    ///   - name: tells several in one store apart. At most one of a name is in use at a time.
    ///   - clock: the clock of the memory tier.
    ///   - wall: what the store's records are dated by.
    ///   - onFailure: told when the disk or a function of the coding failed.
    public init(
        _ disk: DiskStore,
        name: String,
        _ coding: Coding,
        limits: Limits = Limits(),
        clock: any MonotonicClock = SystemMonotonicClock(),
        wall: any WallClock = SystemWallClock(),
        onFailure: @escaping @Sendable (any Error) -> Void = { _ in }
    ) {
        self.disk = disk
        prefix = "spill/\(name)/"
        self.coding = coding
        self.limits = limits
        self.clock = clock
        self.wall = wall
        self.onFailure = onFailure
    }

    /// What has happened so far.
    public var statistics: Statistics { state.withLock { $0.statistics } }

    // MARK: In and out

    /// Takes an entry that left for want of room. Returns at once; it is written afterwards.
    public func spill(_ departure: MemoryTier<Key, Value>.Departure) {
        let now = clock.uptime
        let end = now + limits.lifetime
        let expiresAt = departure.expiresAt.map { min($0, end) } ?? end
        let begins = state.withLock { state -> Bool in
            Self.forget(departure.key, &state)
            guard expiresAt > now, departure.cost <= limits.waitingCostMaximum - state.waitingCost else {
                state.statistics.dropped += 1
                return Self.begin(&state)
            }
            state.last += 1
            state.waiting[departure.key] = Waiting(
                number: state.last,
                value: departure.value,
                cost: departure.cost,
                expiresAt: expiresAt,
                hasLifetime: departure.expiresAt != nil
            )
            state.waitingOrder.append((departure.key, state.last))
            state.waitingCost += departure.cost
            return Self.begin(&state)
        }
        if begins { work() }
    }

    /// The entry of a key, which from now on is not here any more. Whoever puts it back into memory settles it before (`settle`)
    /// and learns whether it was forgotten meanwhile. Cost: a read of the disk, unless it was still waiting to be written.
    public func take(_ key: Key) -> Entry? {
        let now = clock.uptime
        let (found, hasRemovals) = state.withLock { state -> (Found?, Bool) in
            var found: Found?
            if let waiting = state.waiting[key], waiting.expiresAt > now {
                let rest = waiting.hasLifetime ? waiting.expiresAt - now : nil
                let ticket = Self.ticket(key, &state)
                let entry = Entry(value: waiting.value, cost: waiting.cost, lifetime: rest, key: key, ticket: ticket)
                state.statistics.promoted += 1
                found = .waiting(entry)
            } else if let place = state.places[key], place.expiresAt > now {
                found = .place(place, ticket: Self.ticket(key, &state))
            }
            Self.remove(key, &state)
            // What is read must be read before it is removed.
            if case .place = found {
                state.removals.removeLast()
                return (found, false)
            }
            return (found, Self.begin(&state))
        }
        if hasRemovals { work() }
        switch found {
        case nil: return nil
        case .waiting(let entry): return entry
        case .place(let place, let ticket):
            let value = read(place)
            let begins = state.withLock { state in
                if value == nil {
                    state.tickets[ticket] = nil
                    state.statistics.dropped += 1
                } else {
                    state.statistics.promoted += 1
                }
                state.removals.append(place.number)
                return Self.begin(&state)
            }
            if begins { work() }
            guard let value else { return nil }
            let rest = place.hasLifetime ? place.expiresAt - now : nil
            return Entry(value: value, cost: place.cost, lifetime: rest, key: key, ticket: ticket)
        }
    }

    /// Ends what `take` began, once for each entry: whether it is still the one that is meant, and may be put into memory.
    public func settle(_ entry: Entry) -> Bool {
        state.withLock { $0.tickets.removeValue(forKey: entry.ticket)?.isValid ?? false }
    }

    /// Drops what is here of a key, because another value was stored or it was removed.
    public func forget(_ key: Key) {
        let begins = state.withLock { state in
            Self.forget(key, &state)
            return Self.begin(&state)
        }
        if begins { work() }
    }

    /// Drops everything.
    public func removeAll() {
        let begins = state.withLock { state in
            for ticket in state.tickets.keys { state.tickets[ticket]?.isValid = false }
            state.waiting = [:]
            state.waitingCost = 0
            state.removals += state.places.values.map(\.number)
            state.places = [:]
            state.statistics.bytes = 0
            return Self.begin(&state)
        }
        if begins { work() }
    }

    /// Returns when everything is written that was waiting.
    public func flush() async {
        await withCheckedContinuation { continuation in
            let isIdle = state.withLock { state in
                if state.isWorking { state.idle.append(continuation) }
                return !state.isWorking
            }
            if isIdle { continuation.resume() }
        }
    }

    // MARK: State

    private static func ticket(_ key: Key, _ state: inout State) -> Int {
        state.last += 1
        state.tickets[state.last] = (key, true)
        return state.last
    }

    private static func forget(_ key: Key, _ state: inout State) {
        // There are as many as threads that bring something back at this moment.
        for (ticket, promotion) in state.tickets where promotion.key == key { state.tickets[ticket]?.isValid = false }
        remove(key, &state)
    }

    private static func remove(_ key: Key, _ state: inout State) {
        if let waiting = state.waiting.removeValue(forKey: key) { state.waitingCost -= waiting.cost }
        guard let place = state.places.removeValue(forKey: key) else { return }
        state.statistics.bytes -= place.bytes
        state.removals.append(place.number)
    }

    /// Whether work is to be begun.
    private static func begin(_ state: inout State) -> Bool {
        guard !state.isWorking, !state.waiting.isEmpty || !state.removals.isEmpty else { return false }
        state.isWorking = true
        return true
    }

    // MARK: Disk

    private func name(_ number: Int) -> String { "\(prefix)\(number)" }

    private func read(_ place: Place) -> Value? {
        do {
            guard let record = try disk.record(name(place.number)) else { return nil }
            let bytes = try coding.decompress?(record.payload) ?? record.payload
            return try coding.decode(bytes)
        } catch {
            onFailure(error)
            return nil
        }
    }

    private func work() {
        Task.detached(priority: .utility) { [self] in
            clean()
            while step() {}
            // Nothing is left, or something came at the last moment.
        }
    }

    /// Removes what another process has left.
    private func clean() {
        guard !state.withLock({ $0.isClean }) else { return }
        do {
            try disk.write { transaction in
                let old = try transaction.read { try $0.recordKeys(startingWith: prefix) }
                for key in old { try transaction.removeRecord(key) }
            }
        } catch {
            onFailure(error)
        }
        state.withLock { $0.isClean = true }
    }

    /// Writes one entry and removes what is to be removed; false when nothing is left.
    private func step() -> Bool {
        let (job, removals) = state.withLock { state -> (Job, [Int]) in
            let removals = state.removals
            state.removals = []
            var next = 0
            defer { state.waitingOrder.removeFirst(next) }
            while next < state.waitingOrder.count {
                let (key, number) = state.waitingOrder[next]
                next += 1
                // It stays readable until it is written.
                if let waiting = state.waiting[key], waiting.number == number {
                    return (.write(key, waiting), removals)
                }
            }
            if !removals.isEmpty { return (.tidy, removals) }
            state.isWorking = false
            defer { state.idle = [] }
            return (.none(state.idle), [])
        }
        switch job {
        case .none(let idle):
            for continuation in idle { continuation.resume() }
            return false
        case .tidy:
            remove(removals)
            return true
        case .write(let key, let waiting):
            remove(removals)
            write(waiting, for: key)
            return true
        }
    }

    private func remove(_ numbers: [Int]) {
        guard !numbers.isEmpty else { return }
        do {
            try disk.write { transaction in
                for number in numbers { try transaction.removeRecord(name(number)) }
            }
        } catch {
            onFailure(error)
        }
    }

    private func write(_ waiting: Waiting, for key: Key) {
        var written: Int?
        do {
            var bytes = try coding.encode(waiting.value)
            if let compress = coding.compress { bytes = try compress(bytes) }
            if bytes.count <= min(limits.entryBytesMaximum, limits.bytesMaximum) {
                let now = wall.now
                let rest = waiting.expiresAt - clock.uptime
                let record = DiskRecord(name(waiting.number), payload: bytes, recordedAt: now, expiresAt: now + rest)
                try disk.put(record)
                written = bytes.count
            }
        } catch {
            onFailure(error)
        }
        let count = written
        state.withLock { state in
            let isWanted = state.waiting[key]?.number == waiting.number
            if isWanted {
                state.waiting[key] = nil
                state.waitingCost -= waiting.cost
            }
            guard let count else {
                state.statistics.dropped += 1
                return
            }
            state.statistics.spilled += 1
            guard isWanted else { return state.removals.append(waiting.number) }
            state.places[key] = Place(
                number: waiting.number,
                bytes: count,
                cost: waiting.cost,
                expiresAt: waiting.expiresAt,
                hasLifetime: waiting.hasLifetime
            )
            state.order.append((key, waiting.number))
            state.statistics.bytes += count
            makeRoom(&state)
        }
    }

    /// Lets the oldest go until the limit holds.
    private func makeRoom(_ state: inout State) {
        while state.orderStart < state.order.count {
            let (key, number) = state.order[state.orderStart]
            let isThere = state.places[key]?.number == number
            guard !isThere || state.statistics.bytes > limits.bytesMaximum else { break }
            state.orderStart += 1
            guard isThere else { continue }
            Self.remove(key, &state)
            state.statistics.dropped += 1
        }
        // Those that came back are still in the order.
        guard state.order.count > 64 + 2 * state.places.count else { return }
        state.order = state.order.filter { state.places[$0.key]?.number == $0.number }
        state.orderStart = 0
    }
}
