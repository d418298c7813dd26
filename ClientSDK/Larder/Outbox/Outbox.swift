import LarderTime
import Synchronization

/// What was promised to be sent: in order within each scope, side by side across scopes, once in effect.
///
/// Each operation is a row of the cache's store, so that it commits together with whatever else happens, and a tap costs the same
/// however many wait. Safe from any task and thread.
public final class Outbox: Sendable {
    struct State {
        var operations: [String: OutboxOperation] = [:]
        var entries: [Int64: OutboxEntry] = [:]
        /// What is to be sent, by scope, in order. What was refused and passed over is not in it.
        var lanes: [String: [Int64]] = [:]
        var waiters: [Int64: CheckedContinuation<Result<any Sendable, LarderError>, Never>] = [:]
        var task: Task<Void, Never>?
        var timer: Task<Void, Never>?
        var isPaused = true
        var isClosed = false
        var lastInMemory: Int64 = 0
    }

    let core: CacheCore
    let state = Mutex(State())
    /// Held while an operation is put in or edited: two that may become one do not pass each other.
    let gate = Mutex(())
    let signal = Mailbox<Void>()
    private let hub = EventHub<OutboxStatus>()
    private let telling = Mutex(())

    init(_ core: CacheCore) throws(LarderError) {
        self.core = core
        do { try load() } catch { throw LarderError(error) }
    }

    private func load() throws {
        guard let disk = core.disk else { return }
        var rows: [DiskOutboxRow] = []
        while true {
            let last = rows.last?.sequence ?? 0
            let more = try disk.read { transaction in try transaction.outbox(after: last, limit: 500) }
            if more.isEmpty { break }
            rows += more
        }
        state.withLock { state in
            for row in rows {
                let entry = OutboxEntry(row)
                state.entries[row.sequence] = entry
                // Refused operations find their place when it is known what their lanes do about them.
                if entry.state != .refused { state.lanes[entry.scope, default: []].append(row.sequence) }
            }
        }
    }

    // MARK: Registering

    /// Makes an operation known: what was put in before, in this process or an earlier one, is shown and sent from now on.
    ///
    /// Do it before the first read, so that what is pending is never missing from what is shown.
    public func register<Input, Receipt>(_ operation: WriteBehind<Input, Receipt>) {
        register(OutboxOperation(operation))
    }

    /// Makes an operation known: what is in doubt is resolved from now on.
    public func register<Input, Receipt>(_ operation: WriteThrough<Input, Receipt>) {
        register(OutboxOperation(operation))
    }

    private func register(_ operation: OutboxOperation) {
        let restored = state.withLock { state -> [OutboxEntry] in
            let isNew = state.operations[operation.name] == nil
            state.operations[operation.name] = operation
            guard isNew else { return [] }
            let entries = state.entries.values.filter { $0.operation == operation.name }.sorted { $0.id < $1.id }
            if operation.whenRefused == .hold {
                for entry in entries where entry.state == .refused {
                    state.lanes[entry.scope, default: []].append(entry.id.rawValue)
                    state.lanes[entry.scope]?.sort()
                }
            }
            return entries.filter { $0.state != .refused }
        }
        guard !restored.isEmpty else { return }
        var update = Update()
        for entry in restored { showAgain(entry, operation, in: &update) }
        // Nothing is written by it.
        update.isMemoryOnly = true
        do { try core.commit(update) } catch { core.configuration.onEvent(.storageFailed(error)) }
        signal.put(())
    }

    func ensureRegistered(_ name: String, _ make: () -> OutboxOperation) {
        guard state.withLock({ $0.operations[name] == nil }) else { return }
        register(make())
    }

    /// Shows what an operation changes, in the place of what it showed before.
    func showAgain(_ entry: OutboxEntry, _ operation: OutboxOperation, in update: inout Update) {
        do {
            let changes = try operation.changes(entry.payload)
            let id = entry.id.rawValue
            for (key, apply) in changes.entities {
                let overlay = Overlay(operation: id, apply: apply)
                update.steps.append(.overlay(key) { Self.insert(overlay, into: &$0) })
            }
            for (key, apply) in changes.queries {
                let overlay = QueryOverlay(operation: id, apply: apply)
                update.steps.append(
                    .queryOverlay(key) { list in
                        list.append(overlay)
                        list.sort { $0.operation < $1.operation }
                    }
                )
            }
        } catch {
            // Another version of the application stored it. It is told of when it is sent.
            core.configuration.onEvent(.storageFailed(LarderError(error)))
        }
    }

    private static func insert(_ overlay: Overlay, into list: inout [Overlay]) {
        list.append(overlay)
        list.sort { $0.operation < $1.operation }
    }

    /// Shows what an operation changes no more; or until a version of the server's has it.
    func hide(_ entry: OutboxEntry, visibleAt: [EntityKey: Int64] = [:], in update: inout Update) {
        guard let operation = state.withLock({ $0.operations[entry.operation] }),
            let changes = try? operation.changes(entry.payload)
        else { return }
        let id = entry.id.rawValue
        for (key, _) in changes.entities {
            let version = visibleAt[key]
            update.steps.append(
                .overlay(key) { list in
                    guard let version, let index = list.firstIndex(where: { $0.operation == id }) else {
                        return list.removeAll { $0.operation == id }
                    }
                    list[index].endsAtVersion = version
                }
            )
        }
        for (key, _) in changes.queries {
            update.steps.append(.queryOverlay(key) { $0.removeAll { $0.operation == id } })
        }
    }

    // MARK: Putting in

    /// Puts an operation in: it is durable and shown when this returns, and is sent when the network allows.
    ///
    /// - Returns: the operation, or nil where it and an older one undid each other.
    /// - Throws: `.storage` where it could not be kept, `.encoding`, `.closed`. Then nothing has changed.
    @discardableResult
    public func enqueue<Input, Receipt>(
        _ input: Input,
        _ operation: WriteBehind<Input, Receipt>
    ) throws(LarderError) -> OperationID? {
        ensureRegistered(operation.name) { OutboxOperation(operation) }
        let coalesce = { (old: [UInt8]) throws -> Coalesced<Input> in
            operation.coalesce(try Codec<Input>.json.decode(old), input)
        }
        do {
            return try put(
                OutboxOperation(operation),
                scope: operation.scope(input),
                coalescingKey: operation.coalescingKey(input),
                payload: try OutboxOperation.encode(input)
            ) { old in
                switch try coalesce(old) {
                case .keepBoth: .keepBoth
                case .cancelOut: .cancelOut
                case .replace(let input): .replace(try OutboxOperation.encode(input))
                }
            }
        } catch {
            throw LarderError(error)
        }
    }

    func put(
        _ operation: OutboxOperation,
        scope: String,
        coalescingKey: String?,
        payload: [UInt8],
        coalesce: ([UInt8]) throws -> Coalesced<[UInt8]>
    ) throws -> OperationID? {
        // Asked before the gate: it is somebody else's.
        let delay = operation.batchMaximum > 1 ? core.configuration.conduct().batchDelay : .zero
        let (id, commit, step) = try gate.withLock { _ -> (OperationID?, Commit, CacheEvent.OutboxStep) in
            let older = coalescingKey.flatMap { reserve(operation.name, scope, $0) }
            defer { if let older { release(older.id) } }
            guard let older else {
                let (id, commit) = try append(operation, scope, coalescingKey, payload, delay)
                return (id, commit, .enqueued)
            }
            switch try coalesce(older.payload) {
            case .keepBoth:
                let (id, commit) = try append(operation, scope, coalescingKey, payload, delay)
                return (id, commit, .enqueued)
            case .replace(let payload):
                let (id, commit) = try replace(older, operation, payload)
                return (id, commit, .coalesced)
            case .cancelOut:
                let (id, commit) = try remove(older)
                return (id, commit, .cancelled)
            }
        }
        core.announce(commit)
        changed()
        tell(step)
        signal.put(())
        return id
    }

    /// The newest operation with a coalescing key, if it was never sent; it is not sent until it is released.
    private func reserve(_ operation: String, _ scope: String, _ key: String) -> OutboxEntry? {
        state.withLock { state in
            guard
                let id = state.lanes[scope]?.last(where: { state.entries[$0]?.coalescingKey == key }),
                let entry = state.entries[id], entry.operation == operation, entry.state == .pending,
                entry.attempts == 0
            else { return nil }
            state.entries[id]?.isReserved = true
            return entry
        }
    }

    private func release(_ id: OperationID) { state.withLock { $0.entries[id.rawValue]?.isReserved = false } }

    private func append(
        _ operation: OutboxOperation,
        _ scope: String,
        _ coalescingKey: String?,
        _ payload: [UInt8],
        _ delay: Duration
    ) throws -> (OperationID?, Commit) {
        var row = DiskOutboxRow(
            operation: operation.name,
            scope: scope,
            coalescingKey: coalescingKey,
            idempotencyKey: core.configuration.makeIdempotencyKey(),
            payload: payload
        )
        row.enqueued = core.now().wall.nanosecondsSinceEpoch
        let given = SequenceBox()
        let changes = try operation.changes(payload)
        var update = Update()
        if core.disk != nil {
            let stored = row
            update.steps.append(.disk { transaction in given.set(try transaction.append(stored)) })
        } else {
            given.set(
                state.withLock { state in
                    state.lastInMemory += 1
                    return state.lastInMemory
                }
            )
        }
        for (key, apply) in changes.entities {
            update.steps.append(
                .overlay(key) { list in
                    Self.insert(Overlay(operation: given.value, apply: apply), into: &list)
                }
            )
        }
        for (key, apply) in changes.queries {
            update.steps.append(.queryOverlay(key) { $0.append(QueryOverlay(operation: given.value, apply: apply)) })
        }
        let commit = try core.carryOut(update)
        row.sequence = given.value
        let entry = OutboxEntry(row)
        let now = core.now().uptime
        state.withLock { state in
            var added = entry
            if delay > .zero {
                // Others may come that can be sent with it; one that comes later waits no longer than the first.
                let waiting = state.entries.values.lazy
                    .filter { $0.operation == operation.name && $0.attempts == 0 && $0.due > now }.map(\.due)
                added.due = min(waiting.min() ?? now + delay, now + delay)
            }
            state.entries[row.sequence] = added
            state.lanes[scope, default: []].append(row.sequence)
        }
        return (entry.id, commit)
    }

    private func replace(
        _ old: OutboxEntry,
        _ operation: OutboxOperation,
        _ payload: [UInt8]
    ) throws -> (OperationID?, Commit) {
        var new = old
        new.payload = payload
        let row = new.row
        var update = Update()
        if core.disk != nil { update.steps.append(.disk { transaction in try transaction.update(row) }) }
        hide(old, in: &update)
        showAgain(new, operation, in: &update)
        let commit = try core.carryOut(update)
        state.withLock { $0.entries[old.id.rawValue]?.payload = payload }
        return (old.id, commit)
    }

    func remove(_ entry: OutboxEntry) throws -> (OperationID?, Commit) {
        var update = Update()
        removal(of: entry, in: &update)
        let commit = try core.carryOut(update)
        forget(entry)
        return (nil, commit)
    }

    func removal(of entry: OutboxEntry, visibleAt: [EntityKey: Int64] = [:], in update: inout Update) {
        let id = entry.id.rawValue
        if core.disk != nil { update.steps.append(.disk { transaction in try transaction.removeOperation(id) }) }
        hide(entry, visibleAt: visibleAt, in: &update)
    }

    func forget(_ entry: OutboxEntry) {
        state.withLock { state in
            state.entries[entry.id.rawValue] = nil
            state.lanes[entry.scope]?.removeAll { $0 == entry.id.rawValue }
            if state.lanes[entry.scope]?.isEmpty ?? false { state.lanes[entry.scope] = nil }
        }
    }

    // MARK: Looking

    /// All operations, in the order in which they were put in.
    public var entries: [OutboxEntry] { state.withLock { $0.entries.values.sorted { $0.id < $1.id } } }

    /// How it stands.
    public var status: OutboxStatus {
        state.withLock { state in
            var status = OutboxStatus()
            for entry in state.entries.values {
                switch entry.state {
                case .pending: status.pending += 1
                case .sending: status.inFlight += 1
                case .inDoubt:
                    status.pending += 1
                    status.inDoubt += 1
                case .refused: status.refused += 1
                }
                guard entry.state != .refused else { continue }
                status.oldest = min(status.oldest ?? entry.enqueuedAt, entry.enqueuedAt)
            }
            status.heldLanes = state.lanes.values.count { lane in
                lane.first.flatMap { state.entries[$0] }?.state == .refused
            }
            return status
        }
    }

    /// How it stands, now and whenever that changes; who is slow gets the newest.
    public var statuses: EventSequence<OutboxStatus> {
        // First there, then told: what changes in between is not missed.
        let sequence = hub.subscribe(limit: 1)
        changed()
        return sequence
    }

    /// Tells what has become of an operation.
    func tell(_ step: CacheEvent.OutboxStep) {
        core.configuration.onEvent(.outbox(step, depth: state.withLock { $0.entries.count }))
    }

    /// Tells that something has changed. Costs little while nobody listens.
    func changed() {
        guard hub.hasListeners else { return }
        // Looked at and told in one go: otherwise an older status could be the last that is heard.
        let wakeups = telling.withLock { _ in hub.post(status) }
        for wakeup in wakeups { wakeup.resume() }
    }
}

/// The number that the store gives to a row, once it has.
final class SequenceBox: Sendable {
    private let number = Mutex<Int64>(0)

    var value: Int64 { number.withLock { $0 } }

    func set(_ value: Int64) { number.withLock { $0 = value } }
}
