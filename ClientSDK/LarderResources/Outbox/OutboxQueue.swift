import LarderEvents
import LarderTime

/// The operations of an outbox, their lanes, and which of them can be sent at a time. Decides without I/O and calls no user function.
///
/// A lane has the operations of one scope in order; its first one is sent next. A change costs O(log n) for n lanes, however many
/// operations wait. Rejected operations are in their lane only if they block it.
struct OutboxQueue: Sendable {
    /// The group of operations that may share a batch: one operation name, and equally many failures.
    struct Company: Hashable, Sendable {
        let operation: String
        let failureCount: Int
    }

    private struct Slot: Hashable, Sendable {
        let scope: String
        let key: String
    }

    private struct Due: Comparable, Sendable {
        let time: MonotonicTime
        let ticket: UInt64

        static func < (left: Due, right: Due) -> Bool {
            left.time == right.time ? left.ticket < right.ticket : left.time < right.time
        }
    }

    /// The state of a lane: why its first operation is not sent yet, or that it may be.
    private enum Standing: Equatable, Sendable {
        /// Its result, or the registration of its operation.
        case idle
        /// A decision about a rejected operation.
        case blocked
        case delayed(Int64, MonotonicTime)
        case ready(Int64, Company)
    }

    private struct Lane: Sendable {
        var ids = OrderedIDs()
        var standing = Standing.idle
    }

    private var operationsByName: [String: OutboxOperation] = [:]
    private var entriesByID: [Int64: Outbox.Entry] = [:]
    private var lanes: [String: Lane] = [:]
    /// The lanes whose first operation can be sent, each with a ticket that says since when. No heap is empty.
    private var ready: [Company: IndexedHeap<String, UInt64>] = [:]
    private var delayed = IndexedHeap<String, Due>()
    private var lastTicket: UInt64 = 0
    /// The number of operations in flight by scope, where there are any. It is not always the first one of its lane: an older rejected
    /// one may be sent again meanwhile.
    private var inFlightByScope: [String: Int] = [:]
    /// The operations in lanes by scope and coalescing key.
    private var slots: [Slot: OrderedIDs] = [:]
    private var unsent = IndexedHeap<Int64, Int64>()
    private var rejectedIDs: Set<Int64> = []
    private var idsByOperation: [String: Set<Int64>] = [:]
    /// The number of rejected operations by name, where there are any.
    private var rejectedByOperation: [String: Int] = [:]
    private var counts = Outbox.Status()
    /// For operations with a batch delay: when the batch that new ones join is sent.
    private var joinDue: [String: MonotonicTime] = [:]
    /// The size of all operations (`Outbox.Entry.bytes`).
    private(set) var bytes = 0

    // MARK: Reading

    var count: Int { entriesByID.count }
    var values: some Collection<Outbox.Entry> { entriesByID.values }

    subscript(id: Int64) -> Outbox.Entry? { entriesByID[id] }

    /// All operations in the order of enqueuing. Cost: O(n log n).
    var sorted: [Outbox.Entry] { entriesByID.values.sorted { $0.id < $1.id } }

    /// The rejected operations in the order of enqueuing. Cost: that of the result.
    var rejected: [Outbox.Entry] { rejectedIDs.sorted().compactMap { entriesByID[$0] } }

    /// The operations of a name in the order of enqueuing. Cost: that of the result.
    func entries(of operation: String) -> [Outbox.Entry] {
        (idsByOperation[operation] ?? []).sorted().compactMap { entriesByID[$0] }
    }

    func operation(_ name: String) -> OutboxOperation? { operationsByName[name] }

    /// The operations of a lane, in order.
    func lane(_ scope: String) -> ArraySlice<Int64> { lanes[scope]?.ids.all ?? [] }

    func head(of scope: String) -> Outbox.Entry? { lanes[scope]?.ids.first.flatMap { entriesByID[$0] } }

    /// The newest operation of a lane with a coalescing key.
    func newest(in scope: String, key: String) -> Outbox.Entry? {
        slots[Slot(scope: scope, key: key)]?.last.flatMap { entriesByID[$0] }
    }

    var status: Outbox.Status {
        var status = counts
        status.oldest = unsent.first.flatMap { entriesByID[$0.id]?.enqueuedAt }
        return status
    }

    /// The number of unsent operations by unregistered name.
    var unregistered: [String: Int] {
        idsByOperation.reduce(into: [:]) { counts, element in
            guard operationsByName[element.key] == nil else { return }
            let count = element.value.count - (rejectedByOperation[element.key] ?? 0)
            if count > 0 { counts[element.key] = count }
        }
    }

    /// Whether an operation can be sent, is in flight, or becomes ready until `time`.
    func canMove(until time: MonotonicTime) -> Bool {
        counts.inFlight > 0 || !ready.isEmpty || (delayed.first.map { $0.priority.time <= time } ?? false)
    }

    /// Whether no lane can move before the app registers or decides something.
    var isAtStandstill: Bool { counts.inFlight == 0 && ready.isEmpty && delayed.isEmpty }

    // MARK: Changing

    /// - Returns: whether the name was not registered before.
    mutating func register(_ operation: OutboxOperation) -> Bool {
        let isNew = operationsByName[operation.name] == nil
        operationsByName[operation.name] = operation
        guard isNew else { return false }
        for entry in entries(of: operation.name) {
            let id = entry.id.rawValue
            if entry.state == .rejected {
                if operation.onRejection == .block { join(entry, id) }
            }
            if lanes[entry.scope]?.ids.first == id { schedule(entry.scope) }
        }
        return true
    }

    mutating func removeOperations() { operationsByName = [:] }

    /// Adds an operation, or replaces it.
    mutating func put(_ entry: Outbox.Entry) {
        let id = entry.id.rawValue
        guard entriesByID[id] == nil else { return update(id) { $0 = entry } }
        entriesByID[id] = entry
        idsByOperation[entry.operation, default: []].insert(id)
        bytes += entry.bytes
        tally(entry, 1)
        if isInLane(entry) { join(entry, id) }
        schedule(entry.scope)
    }

    /// Adds a new operation, which may wait for others to be sent with it. A later one waits no longer than the first.
    mutating func append(_ entry: Outbox.Entry, delay: Duration, now: MonotonicTime) {
        var entry = entry
        if delay > .zero {
            let open = joinDue[entry.operation].flatMap { $0 > now ? $0 : nil }
            entry.due = min(open ?? now + delay, now + delay)
            joinDue[entry.operation] = entry.due
        }
        put(entry)
    }

    /// Changes an operation if it is there. Its number, name and scope must stay.
    mutating func update(_ id: Int64, _ change: (inout Outbox.Entry) -> Void) {
        guard let old = entriesByID[id] else { return }
        var new = old
        change(&new)
        entriesByID[id] = new
        bytes += new.bytes - old.bytes
        if old.state != new.state {
            tally(old, -1)
            tally(new, 1)
        }
        if isInLane(old) != isInLane(new) {
            if isInLane(new) { join(new, id) } else { leave(old, id) }
        }
        if let first = lanes[new.scope]?.ids.first, first < id, old.state != .sending { return }
        schedule(new.scope)
    }

    mutating func remove(_ id: Int64) {
        guard let entry = entriesByID.removeValue(forKey: id) else { return }
        idsByOperation[entry.operation]?.remove(id)
        if idsByOperation[entry.operation]?.isEmpty ?? false { idsByOperation[entry.operation] = nil }
        bytes -= entry.bytes
        tally(entry, -1)
        leave(entry, id)
        schedule(entry.scope)
    }

    /// Removes all delays, except those that the server asked for.
    mutating func clearDelays() {
        joinDue = [:]
        for (id, entry) in entriesByID where entry.due > Self.atOnce {
            entriesByID[id]?.due = Self.atOnce
        }
        // In the order of enqueuing.
        let waiting = Set(delayed.ids).union(ready.values.flatMap(\.ids))
        let heads = waiting.compactMap { scope in lanes[scope]?.ids.first.map { (scope, $0) } }
        for (scope, _) in heads.sorted(by: { $0.1 < $1.1 }) {
            withdraw(scope)
            schedule(scope)
        }
    }

    // MARK: Sending

    var hasReady: Bool { !ready.isEmpty }

    /// Whether an operation for whose result a caller waits can be sent.
    var hasReadyAwaited: Bool { ready.keys.contains { isAwaited($0) } }

    private func isAwaited(_ company: Company) -> Bool { operationsByName[company.operation]?.isThrough ?? false }

    /// Makes operations ready whose time has come.
    ///
    /// - Returns: the time of the next one.
    mutating func promote(at now: MonotonicTime) -> MonotonicTime? {
        while let (scope, due) = delayed.first {
            guard due.time <= now else { return due.time }
            guard let id = lanes[scope]?.ids.first else {
                delayed.remove(scope)
                continue
            }
            update(id) { entry in
                entry.due = Self.atOnce
                entry.heldUntil = Self.atOnce
            }
        }
        return nil
    }

    /// Takes a batch of ready operations, which are in flight then. Awaited operations come first, because a caller waits; among the
    /// others those come first that have been ready for the longest time, so that no lane overtakes another one again and again.
    ///
    /// - Parameters:
    ///   - seen: later operations are not taken, because other processes may have enqueued some before them.
    ///   - isAwaitedOnly: whether only an operation for whose result a caller waits is taken.
    /// - Returns: in the order of enqueuing; empty if none is ready.
    mutating func takeBatch(
        seen: Int64,
        isAwaitedOnly: Bool = false,
        _ behavior: NetworkBehavior
    ) -> [Outbox.Entry] {
        var exhausted = isAwaitedOnly ? Set(ready.keys.filter { !isAwaited($0) }) : []
        while let company = nextCompany(except: exhausted) {
            exhausted.insert(company)
            // After a failure of a whole batch its size is halved, until the operation that causes the failure is alone.
            let largest = operationsByName[company.operation]?.batchSize(behavior) ?? 1
            let size = max(1, largest >> min(company.failureCount, 30))
            var taken: [Int64] = []
            var unseen: [(id: String, priority: UInt64)] = []
            while taken.count < size, let next = ready[company]?.popFirst() {
                guard let id = lanes[next.id]?.ids.first else { continue }
                if id > seen { unseen.append(next) } else { taken.append(id) }
            }
            for (scope, ticket) in unseen { ready[company]?.set(scope, ticket) }
            if ready[company]?.isEmpty ?? false { ready[company] = nil }
            guard !taken.isEmpty else { continue }
            return taken.sorted().compactMap { id in
                update(id) { entry in
                    entry.state = .sending
                    entry.attempts += 1
                }
                return entriesByID[id]
            }
        }
        return []
    }

    private func nextCompany(except exhausted: Set<Company>) -> Company? {
        var best: (company: Company, isThrough: Bool, ticket: UInt64)?
        for (company, heap) in ready where !exhausted.contains(company) {
            guard let ticket = heap.first?.priority else { continue }
            let isThrough = isAwaited(company)
            if let best, best.isThrough == isThrough ? best.ticket < ticket : best.isThrough { continue }
            best = (company, isThrough, ticket)
        }
        return best?.company
    }

    // MARK: Lanes

    private static let atOnce = MonotonicTime(nanoseconds: .min)

    private func isInLane(_ entry: Outbox.Entry) -> Bool {
        entry.state != .rejected || operationsByName[entry.operation]?.onRejection == .block
    }

    private mutating func join(_ entry: Outbox.Entry, _ id: Int64) {
        lanes[entry.scope, default: Lane()].ids.insert(id)
        if let key = entry.coalescingKey { slots[Slot(scope: entry.scope, key: key), default: OrderedIDs()].insert(id) }
    }

    private mutating func leave(_ entry: Outbox.Entry, _ id: Int64) {
        lanes[entry.scope]?.ids.remove(id)
        guard let key = entry.coalescingKey else { return }
        let slot = Slot(scope: entry.scope, key: key)
        slots[slot]?.remove(id)
        if slots[slot]?.isEmpty ?? false { slots[slot] = nil }
    }

    private mutating func tally(_ entry: Outbox.Entry, _ change: Int) {
        let id = entry.id.rawValue
        switch entry.state {
        case .pending: counts.pending += change
        case .sending:
            counts.inFlight += change
            let inFlight = (inFlightByScope[entry.scope] ?? 0) + change
            inFlightByScope[entry.scope] = inFlight > 0 ? inFlight : nil
        case .inDoubt:
            counts.pending += change
            counts.inDoubt += change
        case .rejected:
            counts.rejected += change
            let rejected = (rejectedByOperation[entry.operation] ?? 0) + change
            rejectedByOperation[entry.operation] = rejected > 0 ? rejected : nil
            if change > 0 { rejectedIDs.insert(id) } else { rejectedIDs.remove(id) }
            return
        }
        if change > 0 { unsent.set(id, id) } else { unsent.remove(id) }
    }

    /// Finds out what a lane waits for. A lane that is ready for the same operation as before keeps its place.
    private mutating func schedule(_ scope: String) {
        guard let lane = lanes[scope] else { return }
        let standing = standing(of: lane)
        guard standing != lane.standing else {
            if lane.ids.isEmpty { lanes[scope] = nil }
            return
        }
        withdraw(scope)
        if lane.ids.isEmpty {
            lanes[scope] = nil
            return
        }
        lanes[scope]?.standing = standing
        switch standing {
        case .idle: break
        case .blocked: counts.blockedScopes += 1
        case .delayed(_, let due):
            lastTicket += 1
            delayed.set(scope, Due(time: due, ticket: lastTicket))
        case .ready(_, let company):
            lastTicket += 1
            ready[company, default: IndexedHeap()].set(scope, lastTicket)
        }
    }

    private func standing(of lane: Lane) -> Standing {
        guard let id = lane.ids.first, let entry = entriesByID[id] else { return .idle }
        switch entry.state {
        case .rejected: return .blocked
        case .sending: return .idle
        case .pending, .inDoubt:
            guard operationsByName[entry.operation] != nil, inFlightByScope[entry.scope] == nil else { return .idle }
            let due = max(entry.due, entry.heldUntil)
            if due > Self.atOnce { return .delayed(id, due) }
            return .ready(id, Company(operation: entry.operation, failureCount: entry.failureCount))
        }
    }

    /// Makes a lane wait for nothing.
    private mutating func withdraw(_ scope: String) {
        guard let lane = lanes[scope] else { return }
        switch lane.standing {
        case .idle: break
        case .blocked: counts.blockedScopes -= 1
        case .delayed: delayed.remove(scope)
        case .ready(_, let company):
            ready[company]?.remove(scope)
            if ready[company]?.isEmpty ?? false { ready[company] = nil }
        }
        lanes[scope]?.standing = .idle
    }
}
