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
/// for left in rest { print(left.entry.operation, left.reason) }
/// ```
public final class Outbox: Sendable {
    struct State {
        var queue = OutboxQueue()
        /// The version of the rows that were read last; nil: to be read again.
        var version: DiskStore.OutboxVersion?
        /// The batches that are being sent, by their numbers.
        var batches: [Int: Batch] = [:]
        var lastBatch = 0
        /// The callers that wait for the results of operations.
        var waiters: [Int64: Waiter] = [:]
        var task: Task<Void, Never>?
        var timer: Task<Void, Never>?
        var isPaused = true
        /// How often in a row operations were not sent for lack of a session, and until when none is tried again.
        var withoutSession = (count: 0, until: MonotonicTime(nanoseconds: .min))
        /// Whether no operation is taken any more.
        var isEnding = false
        var isClosed = false
        /// Whether a call has asked for a check since the last one began: the rows of other processes are read, although this process may
        /// have nothing to send.
        var looksForOthers = false
        /// The error of the store or the lock since the last progress.
        var storeFailure: LarderError?
        /// The server IDs of entities whose creation has ended recently.
        var serverIDs = ServerIDs()
    }

    /// A caller that waits for the result of an operation.
    typealias Waiter = Pending<Result<any Sendable, LarderError>>

    let core: CacheCore
    let state = Mutex(State())
    let signal = Mailbox<Void>()
    /// Of all operations but long ones.
    let turn: SendLock
    /// Of long operations, so that nobody waits for them.
    let longTurn: SendLock
    let hub = EventHub<Outbox.Status>()
    /// Held while observers are told.
    let telling = Mutex(())

    init(_ core: CacheCore) throws(LarderError) {
        self.core = core
        let directory = core.outboxDisk?.configuration.directory
        func file(_ name: String) -> (any ProcessLock)? { directory.map { FileProcessLock(path: "\($0)/\(name)") } }
        turn = SendLock(core.configuration.outboxLock ?? file("store.sending"), core.configuration.random)
        longTurn = SendLock(file("store.uploading"), core.configuration.random)
        core.outboxDisk?.setKnownOperations { [weak self] in
            self?.state.withLock { $0.queue.sorted }.map(\.row) ?? []
        }
        try readRows()
        for operation in core.configuration.operations { register(operation) }
    }

    /// Reports an error as soon as the locks that the caller may hold are released.
    func report(_ error: any Error) {
        core.delayed.add { [core] in core.configuration.onEvent(.storageFailed(LarderError(error))) }
    }

    // MARK: Registering

    /// Registers an operation: stored operations of its name are shown and sent from now on.
    ///
    /// For an operation that needs the open cache. Call it before the first read. Other operations belong in
    /// `CacheConfiguration.operations`, so that pending changes are visible, and operations in doubt are resolved, from the beginning.
    public func register(_ operation: any CacheConfiguration.Operation) { register(OutboxOperation(any: operation)) }

    private func register(_ operation: OutboxOperation) {
        do {
            try locked {
                // Their changes are shown before they can be sent: an operation that has ended must not be shown afterwards.
                let restored = state.withLock { state -> [Outbox.Entry] in
                    guard state.queue.operation(operation.name) == nil else { return [] }
                    return state.queue.entries(of: operation.name).filter { $0.state != .rejected }
                }
                var update = CacheUpdate()
                for entry in restored { showAgain(entry, operation, in: &update) }
                let now = core.now()
                defer {
                    state.withLock { state in
                        state.queue.register(operation)
                        for entry in restored {
                            state.queue.update(entry.id.rawValue) { $0.leaveToOthers(operation, at: now) }
                        }
                    }
                }
                if !update.local.isEmpty { core.announceLater(try core.carryOutLocally(update)) }
            }
        } catch {
            core.configuration.onEvent(.storageFailed(LarderError(error)))
        }
        signal.put(())
    }

    func ensureRegistered(_ operation: OutboxOperation) {
        if state.withLock({ $0.queue.operation(operation.name) == nil }) { register(operation) }
    }

    /// Replaces the local changes that an operation shows.
    func showAgain(_ entry: Outbox.Entry, _ operation: OutboxOperation, in update: inout CacheUpdate) {
        do {
            show(try operation.changes(entry.payload, entry.idempotencyKey), of: entry.id.rawValue, in: &update)
        } catch {
            // Another version of the application stored it.
            report(error)
        }
    }

    func show(_ changes: Outbox.LocalChanges, of id: Int64, in update: inout CacheUpdate) {
        update.local += changes.overlays.map { .show($0.key, Overlay(operation: id, change: $0.change)) }
    }

    /// The local changes of an operation; nil if it is not registered, or if its input cannot be decoded, which was reported before.
    func shown(by entry: Outbox.Entry) -> Outbox.LocalChanges? {
        guard let operation = state.withLock({ $0.queue.operation(entry.operation) }) else { return nil }
        do { return try operation.changes(entry.payload, entry.idempotencyKey) } catch { return nil }
    }

    /// The changes that the server makes for an operation, also for an awaited one; nil as of `shown`.
    func effects(of entry: Outbox.Entry) -> Outbox.LocalChanges? {
        guard let operation = state.withLock({ $0.queue.operation(entry.operation) }) else { return nil }
        do { return try operation.effects(entry.payload, entry.idempotencyKey) } catch { return nil }
    }

    /// Removes the local changes of an operation.
    func hide(_ entry: Outbox.Entry, in update: inout CacheUpdate) {
        guard let changes = shown(by: entry) else { return }
        hide(changes, of: entry.id.rawValue, in: &update)
    }

    func hide(_ changes: Outbox.LocalChanges, of id: Int64, in update: inout CacheUpdate) {
        update.local += changes.overlays.map { .hide($0.key, operation: id) }
    }

    // MARK: Removing

    func removal(of entry: Outbox.Entry, in update: inout CacheUpdate) {
        let id = entry.id.rawValue
        update.mayUseReserve = true
        update.rows.append { transaction in try transaction.removeOperation(id) }
        hide(entry, in: &update)
    }

    /// Removes an awaited write whose caller learns that it has no effect. The removal is synced before: a row that comes back after a loss of
    /// power would be sent.
    func failure(of entry: Outbox.Entry, in update: inout CacheUpdate) {
        removal(of: entry, in: &update)
        update.durability = .powerLoss
    }

    func forget(_ entry: Outbox.Entry) {
        state.withLock { $0.queue.remove(entry.id.rawValue) }
    }
}

extension Outbox {
    /// Operations that are sent together.
    struct Batch: Sendable {
        /// Never used again, so that what is taken twice is in two batches.
        let number: Int
        /// At least one.
        let entries: [Outbox.Entry]
        let kind: OutboxOperation.Kind
    }
}

extension Outbox.State {
    /// The operations that only this process ends.
    var operationsInFlight: Set<OperationID> { Set(batches.values.flatMap(\.entries).map(\.id)) }

    /// The operations that are not in flight, and for whose results callers wait.
    var waiting: [Outbox.Entry] {
        waiters.keys.sorted().compactMap { queue[$0] }.filter { $0.state != .sending }
    }

    /// The kinds of operations of which a batch may be sent beside those in flight. A caller that waits for a result is not held up by requests
    /// that hang: one more batch is allowed for it.
    private func room(_ limit: Int) -> Set<OutboxOperation.Kind> {
        guard !isPaused, !isClosed else { return [] }
        let count = batches.values.count { $0.kind != .long }
        var kinds: Set<OutboxOperation.Kind> = count == batches.count ? [.long] : []
        if count < limit { kinds.insert(.usual) }
        if count <= limit { kinds.insert(.awaited) }
        return kinds
    }

    /// The kinds of operations of which a batch can be sent now.
    func ready(_ limit: Int, at now: MonotonicTime) -> Set<OutboxOperation.Kind> {
        queue.ready(at: now).intersection(room(limit))
    }

    /// Takes the batches that can be sent now.
    ///
    /// - Parameter kinds: those whose lock is held.
    mutating func takeBatches(
        of kinds: Set<OutboxOperation.Kind>,
        _ limit: Int,
        at now: MonotonicTime,
        _ behavior: NetworkBehavior
    ) -> [Outbox.Batch] {
        var taken: [Outbox.Batch] = []
        // The others stay where they are: their attempts, and so their timeouts, have not begun.
        while let (entries, kind) = queue.takeBatch(
            of: room(limit).intersection(kinds),
            at: now,
            behavior
        ) {
            lastBatch += 1
            let batch = Outbox.Batch(number: lastBatch, entries: entries, kind: kind)
            batches[lastBatch] = batch
            taken.append(batch)
        }
        return taken
    }

    /// Another process has decided about one of the operations before they were sent: the rows are read again before they are taken again.
    mutating func giveBack(_ batch: Outbox.Batch) {
        batches[batch.number] = nil
        for entry in batch.entries {
            queue.update(entry.id.rawValue) { entry in
                entry.state = entry.isInDoubt ? .inDoubt : .pending
                entry.attempts -= 1
            }
        }
        version = nil
    }
}
