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
        /// What is to be reported when the gate is not held any more.
        var problems: [LarderError] = []
    }

    let core: CacheCore
    let state = Mutex(State())
    /// Held while an operation is put in or edited: two that may become one do not pass each other.
    let gate: OutboxGate
    let signal = Mailbox<Void>()
    let turn: SendingTurn
    let hub = EventHub<OutboxStatus>()
    let refusalHub = EventHub<[OutboxEntry]>()
    /// Which refused operations were told of; held while something is told.
    let telling = Mutex<[RefusalMark]?>(nil)

    init(_ core: CacheCore) throws(LarderError) {
        self.core = core
        gate = OutboxGate(core)
        let file = core.disk.map { FileOutboxLock(path: $0.configuration.directory + "/store.sending") }
        turn = SendingTurn(core.configuration.outboxLock ?? file)
        do { try load() } catch { throw LarderError(error) }
        for registered in core.configuration.operations { register(registered.operation) }
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
    /// For an operation that needs the open cache. Call it before the first read; others belong in `CacheConfiguration.operations`, so that
    /// a pending change is never missing from what is shown.
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
        tellProblems()
        signal.put(())
    }

    func ensureRegistered(_ name: String, _ make: () -> OutboxOperation) {
        guard state.withLock({ $0.operations[name] == nil }) else { return }
        register(make())
    }

    /// Shows what an operation changes, in the place of what it showed before.
    func showAgain(_ entry: OutboxEntry, _ operation: OutboxOperation, in update: inout Update) {
        do {
            show(try operation.changes(entry.payload), of: entry.id.rawValue, in: &update)
        } catch {
            // Another version of the application stored it. The gate may be held here.
            state.withLock { $0.problems.append(LarderError(error)) }
        }
    }

    /// Reports what could not be read while the gate was held.
    func tellProblems() {
        for problem in state.withLock({ $0.takeProblems() }) { core.configuration.onEvent(.storageFailed(problem)) }
    }

    func show(_ changes: LocalChanges, of id: Int64, in update: inout Update) {
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
    }

    static func insert(_ overlay: Overlay, into list: inout [Overlay]) {
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
        hide(changes, of: entry.id.rawValue, visibleAt: visibleAt, in: &update)
    }

    func hide(
        _ changes: LocalChanges,
        of id: Int64,
        visibleAt: [EntityKey: Int64] = [:],
        in update: inout Update
    ) {
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

    // MARK: Taking out

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
        removeRow(of: entry, in: &update)
        hide(entry, visibleAt: visibleAt, in: &update)
    }

    func removeRow(of entry: OutboxEntry, in update: inout Update) {
        let id = entry.id.rawValue
        update.mayUseReserve = true
        if core.disk != nil { update.steps.append(.disk { transaction in try transaction.removeOperation(id) }) }
        if entry.refusal != nil { update.setMetadata(nil, for: OutboxRefusal.metadataKey(id)) }
    }

    func forget(_ entry: OutboxEntry) {
        state.withLock { state in
            state.entries[entry.id.rawValue] = nil
            state.lanes[entry.scope]?.removeAll { $0 == entry.id.rawValue }
            if state.lanes[entry.scope]?.isEmpty ?? false { state.lanes[entry.scope] = nil }
        }
    }
}

extension Outbox.State {
    fileprivate mutating func takeProblems() -> [LarderError] {
        guard !problems.isEmpty else { return [] }
        defer { problems = [] }
        return problems
    }
}
