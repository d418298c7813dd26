import LarderEvents
import LarderStorage
import LarderTime
import Synchronization

/// Durable operations that wait to be sent: in order within each scope, concurrently across scopes, each with one effect.
///
/// Each operation is a row of a database that holds nothing else which grows, so that enqueuing waits for no commit of content and for
/// no request. Its cost does not depend on the number of waiting operations. Safe from any task and thread.
///
/// ```swift
/// let outbox = larder.outbox
/// print(outbox.status.pending, "to send,", outbox.rejected.count, "rejected")
/// for entry in outbox.rejected { try outbox.drop(entry.id) }
/// let rest = try await outbox.drain(within: .seconds(5))      // before the process ends
/// print(rest.isDrained)
/// ```
public final class Outbox: Sendable {
    struct State {
        var queue = OutboxQueue()
        /// The number of batches that are being sent, without a long one.
        var batchesInFlight = 0
        /// The long operation that is being sent (`WriteBehind.isLong`).
        var longInFlight: OperationID?
        var waiters: [Int64: CheckedContinuation<Result<any Sendable, LarderError>, Never>] = [:]
        var task: Task<Void, Never>?
        var timer: Task<Void, Never>?
        var isPaused = true
        /// Whether no operation is taken any more.
        var isEnding = false
        var isClosed = false
        /// The number up to which rows were read from the store: later operations are not sent before rows of other processes in
        /// between were read.
        var lastSeen: Int64 = 0
        /// The largest number that was enqueued in this process.
        var newestOwn: Int64 = 0
        /// Whether to read rows of other processes although this process has nothing to send.
        var looksForOthers = false
        /// How often in a row another process held the lock, and when to try again.
        var failedLockAttempts = 0
        var lockRetryDue: MonotonicTime?
        /// The number of calls that asked for an immediate check: a decision to wait is void if it has changed since.
        var delayResets = 0
        /// The error of the store or the lock since the last progress, and the total number of errors.
        var storeFailure: LarderError?
        var storeFailures = 0
        /// The server IDs of entities whose creation has ended recently.
        var serverIDs = ServerIDs()
        /// Errors to report after the outbox lock is released.
        var problems: [LarderError] = []
    }

    let core: CacheCore
    let state = Mutex(State())
    /// Held while operations are enqueued, coalesced, edited or removed.
    let lock: OutboxLock
    let signal = Mailbox<Void>()
    let turn: SendLock
    let hub = EventHub<Outbox.Status>()
    let rejectionHub = EventHub<[Outbox.Entry]>()
    /// The rejected operations that observers were told of; held while they are told.
    let telling = Mutex<[RejectionMark]?>(nil)

    init(_ core: CacheCore) throws(LarderError) {
        self.core = core
        lock = OutboxLock(core)
        let file = core.outboxDisk.map { FileProcessLock(path: $0.configuration.directory + "/store.sending") }
        turn = SendLock(core.configuration.outboxLock ?? file)
        do { try load() } catch { throw LarderError(error) }
        for operation in core.configuration.operations { register(OutboxOperation(any: operation)) }
    }

    private func load() throws {
        guard let disk = core.outboxDisk else { return }
        let entries = try Self.entries(in: disk, after: 0)
        let names = ServerIDs(encoded: try disk.metadata(ServerIDs.metadataKey))
        let now = core.now()
        state.withLock { state in
            state.serverIDs = names
            for var entry in entries {
                entry.applyHold(at: now)
                state.queue.put(entry)
                state.lastSeen = entry.id.rawValue
            }
        }
    }

    // MARK: Registering

    /// Registers an operation: stored operations of its name are shown and sent from now on.
    ///
    /// For an operation that needs the open cache. Call it before the first read. Other operations belong in
    /// `CacheConfiguration.operations`, so that pending changes are visible from the first read on.
    public func register<Input, Receipt>(_ operation: WriteBehind<Input, Receipt>) {
        register(OutboxOperation(operation))
    }

    /// Registers an operation: operations in doubt are resolved from now on.
    public func register<Input, Receipt>(_ operation: WriteThrough<Input, Receipt>) {
        register(OutboxOperation(operation))
    }

    /// Registers an operation of any type.
    package func register(any operation: any CacheConfiguration.Operation) { register(OutboxOperation(any: operation)) }

    private func register(_ operation: OutboxOperation) {
        let commit = lock.withLock { _ -> Commit? in
            // Their changes are shown before they can be sent: an operation that has ended must not be shown afterwards.
            let restored = state.withLock { state -> [Outbox.Entry] in
                guard state.queue.operation(operation.name) == nil else { return [] }
                return state.queue.entries(of: operation.name).filter { $0.state != .rejected }
            }
            var update = CacheUpdate()
            for entry in restored { showAgain(entry, operation, in: &update) }
            var commit: Commit?
            do { if !update.steps.isEmpty { commit = try core.carryOutLocally(update) } } catch {
                state.withLock { $0.problems.append(LarderError(error)) }
            }
            state.withLock { _ = $0.queue.register(operation) }
            return commit
        }
        if let commit { core.announce(commit) }
        tellProblems()
        signal.put(())
    }

    func ensureRegistered(_ name: String, _ make: () -> OutboxOperation) {
        guard state.withLock({ $0.queue.operation(name) == nil }) else { return }
        register(make())
    }

    /// Replaces the local changes that an operation shows.
    func showAgain(_ entry: Outbox.Entry, _ operation: OutboxOperation, in update: inout CacheUpdate) {
        do {
            show(try operation.changes(entry.payload, entry.idempotencyKey), of: entry.id.rawValue, in: &update)
        } catch {
            // Another version of the application stored it. The outbox lock may be held here.
            state.withLock { $0.problems.append(LarderError(error)) }
        }
    }

    /// Reports errors that occurred while the outbox lock was held.
    func tellProblems() {
        for problem in state.withLock({ $0.takeProblems() }) { core.configuration.onEvent(.storageFailed(problem)) }
    }

    func show(_ changes: Outbox.LocalChanges, of id: Int64, in update: inout CacheUpdate) {
        for (key, apply) in changes.entities {
            let overlay = Overlay(operation: id, apply: apply)
            update.steps.append(.overlay(key) { Self.insert(overlay, into: &$0, \.operation) })
        }
        for (key, apply) in changes.queries {
            let overlay = QueryOverlay(operation: id, apply: apply)
            update.steps.append(.queryOverlay(key) { Self.insert(overlay, into: &$0, \.operation) })
        }
    }

    /// Inserts an overlay in the order of the operations; usually it is the last.
    private static func insert<Element>(
        _ overlay: Element,
        into list: inout [Element],
        _ number: (Element) -> Int64
    ) {
        let index = list.lastIndex { number($0) <= number(overlay) }.map { $0 + 1 } ?? 0
        list.insert(overlay, at: index)
    }

    /// The local changes of an operation; nil if it is not registered, or if its input cannot be decoded, which was reported before.
    func shown(by entry: Outbox.Entry) -> Outbox.LocalChanges? {
        guard let operation = state.withLock({ $0.queue.operation(entry.operation) }) else { return nil }
        do { return try operation.changes(entry.payload, entry.idempotencyKey) } catch { return nil }
    }

    /// Removes the local changes of an operation.
    func hide(_ entry: Outbox.Entry, in update: inout CacheUpdate) {
        guard let changes = shown(by: entry) else { return }
        hide(changes, of: entry.id.rawValue, in: &update)
    }

    func hide(_ changes: Outbox.LocalChanges, of id: Int64, in update: inout CacheUpdate) {
        for (key, _) in changes.entities {
            update.steps.append(.overlay(key) { $0.removeAll { $0.operation == id } })
        }
        for (key, _) in changes.queries {
            update.steps.append(.queryOverlay(key) { $0.removeAll { $0.operation == id } })
        }
    }

    // MARK: Removing

    func removal(of entry: Outbox.Entry, in update: inout CacheUpdate) {
        removeRow(of: entry, in: &update)
        hide(entry, in: &update)
    }

    /// Removes an awaited write whose caller learns that it has no effect. The removal is synced before: a row that comes back after a loss of
    /// power would be sent.
    func failure(of entry: Outbox.Entry, in update: inout CacheUpdate) {
        removal(of: entry, in: &update)
        update.durability = .powerLoss
    }

    func removeRow(of entry: Outbox.Entry, in update: inout CacheUpdate) {
        let id = entry.id.rawValue
        update.mayUseReserve = true
        let hasNote = entry.rejection != nil || entry.hold != nil
        update.rows.append { transaction in
            try transaction.removeOperation(id)
            if hasNote { try transaction.setMetadata(nil, for: DiskOutboxRow.noteKey(id)) }
        }
    }

    func forget(_ entry: Outbox.Entry) {
        state.withLock { $0.queue.remove(entry.id.rawValue) }
    }
}

extension Outbox.State {
    fileprivate mutating func takeProblems() -> [LarderError] {
        guard !problems.isEmpty else { return [] }
        defer { problems = [] }
        return problems
    }
}
