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
        /// Up to which number rows were read from the store: what was put in behind it is not sent before it is known what other
        /// processes have put in between.
        var lastSeen: Int64 = 0
        /// The largest number of what was put in here.
        var newestOwn: Int64 = 0
        /// Whether to look for what others have left, although nothing of one's own is to be sent.
        var looksForOthers = false
        /// How often in a row another process had the turn, and when to ask again.
        var refusedTurns = 0
        var turnDue: MonotonicTime?
        /// How often it was asked to look at once: who decides to wait meanwhile has decided too early.
        var hurries = 0
        /// What the store or the lock has failed with since something was last sent or decided, and how often it has in all.
        var storeFailure: LarderError?
        var storeFailures = 0
    }

    let core: CacheCore
    let state = Mutex(State())
    /// Held while an operation is put in or edited: two that may become one do not pass each other.
    let gate = Mutex(())
    let signal = Mailbox<Void>()
    let turn: SendingTurn
    let hub = EventHub<OutboxStatus>()
    let refusalHub = EventHub<[OutboxEntry]>()
    /// Which refused operations were told of; held while something is told.
    let telling = Mutex<[RefusalMark]?>(nil)

    init(_ core: CacheCore) throws(LarderError) {
        self.core = core
        let file = core.disk.map { FileOutboxLock(path: $0.configuration.directory + "/store.sending") }
        turn = SendingTurn(core.configuration.outboxLock ?? file)
        do { try load() } catch { throw LarderError(error) }
    }

    private func load() throws {
        guard let disk = core.disk else { return }
        let rows = try Self.rows(in: disk, after: 0)
        state.withLock { state in
            for (row, refusal) in rows {
                let entry = OutboxEntry(row, refusal)
                state.entries[row.sequence] = entry
                state.lastSeen = row.sequence
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

    /// What an operation shows; nil where it shows nothing: it is not registered, or could not be read when it was to be shown, and
    /// was told of then.
    func shown(by entry: OutboxEntry) -> LocalChanges? {
        guard let operation = state.withLock({ $0.operations[entry.operation] }) else { return nil }
        do { return try operation.changes(entry.payload) } catch { return nil }
    }

    /// Shows what an operation changes no more; or until a version of the server's has it.
    func hide(_ entry: OutboxEntry, visibleAt: [EntityKey: Int64] = [:], in update: inout Update) {
        guard let changes = shown(by: entry) else { return }
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
        core.owner.requireOutside("Outbox.enqueue")
        ensureRegistered(operation.name) { OutboxOperation(operation) }
        let coalesce = { (old: [UInt8]) throws -> Coalesced<Input> in
            operation.coalesce(try operation.codec.decode(old), input)
        }
        do {
            // Of the input that is at hand: to decode it again would take as long as to store it.
            var changes = LocalChanges()
            operation.changes(input, &changes)
            return try put(
                OutboxOperation(operation),
                scope: operation.scope(input),
                coalescingKey: operation.coalescingKey(input),
                payload: try OutboxOperation.encode(input, operation.codec),
                changes: changes
            ) { old in
                switch try coalesce(old) {
                case .keepBoth: .keepBoth
                case .cancelOut: .cancelOut
                case .replace(let input): .replace(try OutboxOperation.encode(input, operation.codec))
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
        changes: LocalChanges,
        coalesce: ([UInt8]) throws -> Coalesced<[UInt8]>
    ) throws -> OperationID? {
        var adopted: Commit?
        // Asked before the gate: it is somebody else's.
        let delay = operation.batchMaximum > 1 ? core.configuration.conduct().batchDelay : .zero
        let (id, commit, step) = try gate.withLock { _ -> (OperationID?, Commit, CacheEvent.OutboxStep) in
            var older = coalescingKey.flatMap { reserve(operation.name, scope, $0) }
            if let known = older {
                // What another process has put in behind it is newer: this must not become one with what is before that.
                release(known.id)
                adopted = try adoptUnseen()
                older = coalescingKey.flatMap { reserve(operation.name, scope, $0) }
            }
            defer { if let older { release(older.id) } }
            do {
                switch try older.map({ try coalesce($0.payload) }) ?? .keepBoth {
                case .keepBoth: break
                case .replace(let payload):
                    guard let older else { break }
                    let (id, commit) = try replace(older, operation, payload)
                    return (id, commit, .coalesced)
                case .cancelOut:
                    guard let older else { break }
                    let (id, commit) = try cancel(older)
                    return (id, commit, .cancelled)
                }
            } catch  where Overtaken.isCause(of: error) {
                // Another process is sending it, or has: what comes now is another operation.
            }
            let (id, commit) = try append(operation, scope, coalescingKey, payload, changes, delay)
            return (id, commit, .enqueued)
        }
        if let adopted { core.announce(adopted) }
        core.announce(commit)
        changed()
        tell(step)
        // Nobody is woken who would find that nothing may be sent: that takes as long as to store it.
        if !state.withLock({ $0.isPaused }) { signal.put(()) }
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
        _ changes: LocalChanges,
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
            state.newestOwn = max(state.newestOwn, row.sequence)
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
        requireUntouched(old, in: &update)
        if core.disk != nil { update.steps.append(.disk { transaction in try transaction.update(row) }) }
        hide(old, in: &update)
        showAgain(new, operation, in: &update)
        let commit = try core.carryOut(update)
        state.withLock { $0.entries[old.id.rawValue]?.payload = payload }
        return (old.id, commit)
    }

    private func cancel(_ entry: OutboxEntry) throws -> (OperationID?, Commit) {
        var update = Update()
        requireUntouched(entry, in: &update)
        removal(of: entry, in: &update)
        let commit = try core.carryOut(update)
        forget(entry)
        return (nil, commit)
    }

    /// - Parameter isAllowed: what has to be true of the row for that, whatever other processes have done to it.
    func remove(
        _ entry: OutboxEntry,
        where isAllowed: @escaping @Sendable (DiskOutboxRow) -> Bool
    ) throws -> (OperationID?, Commit) {
        var update = Update()
        require(entry, in: &update, isAllowed)
        removal(of: entry, in: &update)
        let commit = try core.carryOut(update)
        forget(entry)
        return (nil, commit)
    }

    func removal(of entry: OutboxEntry, visibleAt: [EntityKey: Int64] = [:], in update: inout Update) {
        let id = entry.id.rawValue
        if core.disk != nil { update.steps.append(.disk { transaction in try transaction.removeOperation(id) }) }
        if entry.refusal != nil { update.setMetadata(nil, for: OutboxRefusal.metadataKey(id)) }
        hide(entry, visibleAt: visibleAt, in: &update)
    }

    func forget(_ entry: OutboxEntry) {
        state.withLock { state in
            state.entries[entry.id.rawValue] = nil
            state.lanes[entry.scope]?.removeAll { $0 == entry.id.rawValue }
            if state.lanes[entry.scope]?.isEmpty ?? false { state.lanes[entry.scope] = nil }
        }
    }
}

/// The number that the store gives to a row, once it has.
final class SequenceBox: Sendable {
    private let number = Mutex<Int64>(0)

    var value: Int64 { number.withLock { $0 } }

    func set(_ value: Int64) { number.withLock { $0 = value } }
}
