import LarderEvents
import LarderTime

/// The operations of an outbox, their lanes, and which of them can be sent at a time. Decides without I/O and calls no user function.
///
/// A lane has the operations of one scope in order; its first one is sent next. Rejected operations are in their lane only if they block it.
/// What can be sent is found by looking at all lanes. Cost: some 10 ns for each.
struct OutboxQueue: Sendable {
    typealias Kind = OutboxOperation.Kind

    /// The group of operations that may share a batch: one operation name, and equally many failures.
    private struct Company: Hashable, Sendable {
        let operation: String
        let kind: Kind
        let failureCount: Int
    }

    private struct Lane: Sendable {
        /// In order.
        var ids: [Int64] = []
        /// By coalescing key, in order.
        var idsByKey: [String?: [Int64]] = [:]
        /// The order in which lanes take turns: it grows with each lane that is begun, and each operation that is taken.
        var turn: UInt64
        /// The number of its operations in flight.
        var inFlight = 0
        /// What its first operation is sent with, and from when on; nil while it waits for a result, a registration or a decision.
        var next: (company: Company, due: MonotonicTime)?

        init(turn: UInt64) { self.turn = turn }

        mutating func insert(_ entry: Outbox.Entry) {
            ids.insertInOrder(entry.id.rawValue)
            idsByKey[entry.coalescingKey, default: []].insertInOrder(entry.id.rawValue)
        }

        mutating func remove(_ entry: Outbox.Entry) {
            ids.removeInOrder(entry.id.rawValue)
            idsByKey[entry.coalescingKey]?.removeInOrder(entry.id.rawValue)
            if idsByKey[entry.coalescingKey]?.isEmpty == true { idsByKey[entry.coalescingKey] = nil }
        }
    }

    private var operationsByName: [String: OutboxOperation] = [:]
    private var entriesByID: [Int64: Outbox.Entry] = [:]
    /// The numbers of all operations, in order.
    private var ids: [Int64] = []
    private var lanes: [String: Lane] = [:]
    private var lastTurn: UInt64 = 0
    private var counts = Outbox.Status()
    /// For operations with a batch delay: when the batch that new ones join is sent.
    private var joinDue: [String: MonotonicTime] = [:]
    /// The size of all operations (`Outbox.Entry.bytes`).
    private(set) var bytes = 0
    /// The largest number that was added.
    private(set) var newest: Int64 = 0

    // MARK: Reading

    var count: Int { entriesByID.count }

    var values: some Collection<Outbox.Entry> { entriesByID.values }

    subscript(id: Int64) -> Outbox.Entry? { entriesByID[id] }

    /// All operations in the order of enqueuing.
    var sorted: [Outbox.Entry] { ids.compactMap { entriesByID[$0] } }

    /// The rejected operations in the order of enqueuing.
    var rejected: [Outbox.Entry] { counts.rejected == 0 ? [] : sorted.filter { $0.state == .rejected } }

    /// The operations of a name in the order of enqueuing.
    func entries(of operation: String) -> [Outbox.Entry] { sorted.filter { $0.operation == operation } }

    func operation(_ name: String) -> OutboxOperation? { operationsByName[name] }

    /// The operations of a lane, in order.
    func lane(_ scope: String) -> [Int64] { lanes[scope]?.ids ?? [] }

    func head(of scope: String) -> Outbox.Entry? { lanes[scope]?.ids.first.flatMap { entriesByID[$0] } }

    /// The newest operation of a lane with a coalescing key; nil also if one without a key is behind it, which may change the same.
    func newest(in scope: String, key: String) -> Outbox.Entry? {
        guard let lane = lanes[scope], let id = lane.idsByKey[key]?.last, id > lane.idsByKey[nil]?.last ?? .min else {
            return nil
        }
        return entriesByID[id]
    }

    var status: Outbox.Status {
        var status = counts
        if counts.rejected > 0 { status.blockedScopes = lanes.keys.count { head(of: $0)?.state == .rejected } }
        status.oldest = ids.lazy.compactMap { entriesByID[$0] }.first { $0.state != .rejected }?.enqueuedAt
        return status
    }

    /// The number of unsent operations by unregistered name.
    var unregistered: [String: Int] {
        entriesByID.values.reduce(into: [:]) { counts, entry in
            guard operationsByName[entry.operation] == nil, entry.state != .rejected else { return }
            counts[entry.operation, default: 0] += 1
        }
    }

    /// Whether an operation can be sent, is in flight, or becomes ready until `time`.
    func canMove(until time: MonotonicTime) -> Bool {
        counts.inFlight > 0
            || lanes.values.contains { lane in
                company(of: lane, at: time) != nil
            }
    }

    /// Whether no lane can move before the app registers or decides something.
    var isAtStandstill: Bool { !canMove(until: MonotonicTime(nanoseconds: .max)) }

    // MARK: Changing

    mutating func register(_ operation: OutboxOperation) {
        guard operationsByName.updateValue(operation, forKey: operation.name) == nil else { return }
        for entry in entries(of: operation.name) {
            if entry.state == .rejected, isInLane(entry) { join(entry) }
            look(at: entry.scope)
        }
    }

    mutating func removeOperations() { operationsByName = [:] }

    /// Adds an operation, or replaces it.
    mutating func put(_ entry: Outbox.Entry) {
        let id = entry.id.rawValue
        guard entriesByID[id] == nil else { return update(id) { $0 = entry } }
        entriesByID[id] = entry
        ids.insertInOrder(id)
        newest = max(newest, id)
        bytes += entry.bytes
        tally(entry, 1)
        if isInLane(entry) { join(entry) }
        look(at: entry.scope)
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
        tally(old, -1)
        tally(new, 1)
        if isInLane(old) != isInLane(new) {
            if isInLane(new) { join(new) } else { leave(old) }
        }
        look(at: new.scope)
    }

    mutating func remove(_ id: Int64) {
        guard let entry = entriesByID.removeValue(forKey: id) else { return }
        ids.removeInOrder(id)
        bytes -= entry.bytes
        tally(entry, -1)
        leave(entry)
        look(at: entry.scope)
    }

    /// Removes all delays, except those that the server asked for.
    mutating func clearDelays() {
        joinDue = [:]
        for (id, entry) in entriesByID where entry.due > Self.atOnce { entriesByID[id]?.due = Self.atOnce }
        for scope in lanes.keys { look(at: scope) }
    }

    /// Delays all operations that nobody waits for.
    mutating func delay(until due: MonotonicTime) {
        for (id, entry) in entriesByID where entry.due < due && operation(entry.operation)?.isThrough != true {
            entriesByID[id]?.due = due
        }
        for scope in lanes.keys { look(at: scope) }
    }

    // MARK: Sending

    /// The kinds of the operations that can be sent.
    func ready(at now: MonotonicTime) -> Set<Kind> {
        lanes.values.reduce(into: []) { kinds, lane in
            if let company = company(of: lane, at: now) { kinds.insert(company.kind) }
        }
    }

    /// When the next operation can be sent that cannot be sent yet.
    func nextDue(after now: MonotonicTime) -> MonotonicTime? {
        let times = lanes.values.lazy.compactMap { lane in
            lane.next.flatMap { $0.due > now ? $0.due : nil }
        }
        return times.min()
    }

    /// Takes a batch of ready operations, which are in flight then. Awaited operations come first, because a caller waits; among the
    /// others those come first whose lanes were not served for the longest time, so that no lane overtakes another one again and again.
    ///
    /// - Returns: in the order of enqueuing, and their kind; nil if none of the kinds is ready.
    mutating func takeBatch(
        of kinds: Set<Kind>,
        at now: MonotonicTime,
        _ behavior: NetworkBehavior
    ) -> (entries: [Outbox.Entry], kind: Kind)? {
        let ready = lanes.values.compactMap { lane -> (id: Int64, turn: UInt64, company: Company)? in
            guard let id = lane.ids.first, let company = company(of: lane, at: now),
                kinds.contains(company.kind)
            else { return nil }
            return (id, lane.turn, company)
        }
        let awaited = ready.filter { $0.company.kind == .awaited }
        guard let first = (awaited.isEmpty ? ready : awaited).min(by: { $0.turn < $1.turn }) else { return nil }
        // After a failure of a whole batch its size is halved, until the operation that causes the failure is alone.
        let largest = operationsByName[first.company.operation]?.batchSize(behavior) ?? 1
        let size = max(1, largest >> min(first.company.failureCount, 30))
        let others = size == 1 ? [first] : ready.filter { $0.company == first.company }.sorted { $0.turn < $1.turn }
        let entries = others.prefix(size).map(\.id).sorted().compactMap { id -> Outbox.Entry? in
            update(id) { entry in
                entry.state = .sending
                entry.attempts += 1
            }
            guard let entry = entriesByID[id] else { return nil }
            lastTurn += 1
            lanes[entry.scope]?.turn = lastTurn
            return entry
        }
        return (entries, first.company.kind)
    }

    // MARK: Lanes

    private static let atOnce = MonotonicTime(nanoseconds: .min)

    private func isInLane(_ entry: Outbox.Entry) -> Bool {
        entry.state != .rejected || operationsByName[entry.operation]?.rejectionBlocksScope == true
    }

    private mutating func join(_ entry: Outbox.Entry) {
        if lanes[entry.scope] == nil { lastTurn += 1 }
        lanes[entry.scope, default: Lane(turn: lastTurn)].insert(entry)
    }

    private mutating func leave(_ entry: Outbox.Entry) { lanes[entry.scope]?.remove(entry) }

    /// The group of the operation that a lane can send at a time; nil if there is none.
    private func company(of lane: Lane, at now: MonotonicTime) -> Company? {
        lane.next.flatMap { $0.due <= now ? $0.company : nil }
    }

    /// Finds out what a lane sends next after a change.
    private mutating func look(at scope: String) {
        guard let first = head(of: scope) else {
            lanes[scope] = nil
            return
        }
        // Not always the first one is in flight: an older rejected one may be sent again meanwhile.
        guard first.state != .rejected, let operation = operationsByName[first.operation],
            lanes[scope]?.inFlight == 0
        else {
            lanes[scope]?.next = nil
            return
        }
        let company = Company(operation: first.operation, kind: operation.kind, failureCount: first.failureCount)
        lanes[scope]?.next = (company, max(first.due, first.heldUntil))
    }

    private mutating func tally(_ entry: Outbox.Entry, _ change: Int) {
        switch entry.state {
        case .pending: counts.pending += change
        case .sending:
            counts.inFlight += change
            lanes[entry.scope]?.inFlight += change
        case .inDoubt:
            counts.pending += change
            counts.inDoubt += change
        case .rejected: counts.rejected += change
        }
    }
}

extension [Int64] {
    /// Inserts a number in order; usually it is the last.
    fileprivate mutating func insertInOrder(_ id: Int64) {
        insert(id, at: lastIndex { $0 < id }.map { $0 + 1 } ?? 0)
    }

    /// Removes a number; usually it is one of the first.
    fileprivate mutating func removeInOrder(_ id: Int64) {
        if let index = firstIndex(of: id) { remove(at: index) }
    }
}
