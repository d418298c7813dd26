import LarderEvents
import LarderStorage
import LarderTime
import Synchronization

/// Sharing of one outbox by several processes: the rows are authoritative, the process with the send lock sends, and all read the rows again
/// when another one has changed some.
extension Outbox {
    /// If another process changes an operation each time between reading its row and changing it, the change fails.
    private static let attemptsMaximum = 8

    // MARK: Reading rows

    /// Calls a function with the outbox lock held, and then delivers the events that the store has reported meanwhile, unless this is a part of
    /// a commit.
    func locked<Result: Sendable>(_ body: () throws -> Result) throws -> Result {
        defer {
            if !core.commits.isHeldByCaller { core.delayed.deliver() }
            changed()
        }
        return try core.outboxLock.withLock { _ in try body() }
    }

    /// Calls a function that depends on the rows when all of them are known, and again if it finds that another process has changed one of them
    /// meanwhile. The outbox lock is held.
    func withCurrentRows<Result>(_ body: () throws -> Result) throws -> Result {
        var attempts = 1
        while true {
            try refreshRows()
            do { return try body() } catch  where Overtaken.isCause(of: error) {
                guard attempts < Self.attemptsMaximum else {
                    throw LarderError(
                        .storage,
                        "Another process has changed the operations \(attempts) times while they were being changed here. Nothing was stored; try again.",
                        cause: error
                    )
                }
                attempts += 1
                state.withLock { $0.version = nil }
            }
        }
    }

    /// Applies what other processes have done. Cost: some microseconds if they have done nothing.
    ///
    /// - Throws: `.storage`, `.closed`.
    package func readRows() throws(LarderError) {
        do { try locked { try refreshRows() } } catch { throw LarderError(error) }
    }

    /// Reads all rows again if another process may have changed some, and compares them by number. Operations in flight in this process stay as
    /// they are: only this process ends them. The outbox lock is held.
    func refreshRows() throws {
        guard let disk = core.outboxDisk else { return }
        // Before the rows are read: an operation that ends meanwhile is not taken for one of another process.
        let (version, own) = state.withLock { ($0.version, $0.operationsInFlight) }
        let read: (rows: [DiskOutboxRow], version: DiskStore.OutboxVersion)?
        do { read = try disk.outbox(since: version) } catch {
            if core.isClosed { throw CacheCore.isClosedError }
            throw error
        }
        guard let stored = read else { return }
        let names = ServerIDs(encoded: try disk.metadata(ServerIDs.metadataKey))
        let numbers = Set(stored.rows.map(\.sequence))
        let removed = state.withLock { state in
            state.version = stored.version
            state.serverIDs = names
            return state.queue.values.filter { !numbers.contains($0.id.rawValue) && !own.contains($0.id) }
        }
        var update = CacheUpdate()
        update.isMemoryOnly = true
        for entry in removed { absorb(entry, in: &update) }
        // What waited behind them may be ready, and the other process may have died.
        if !removed.isEmpty { signal.put(()) }
        for row in stored.rows {
            let entry = Outbox.Entry(row)
            if !own.contains(entry.id) { adopt(entry, in: &update) }
        }
        if !update.local.isEmpty { core.announceLater(try core.carryOutLocally(update)) }
    }

    /// Applies the current state of a row, and wakes the sender, which schedules its next attempt.
    private func adopt(_ stored: Outbox.Entry, in update: inout CacheUpdate) {
        let (known, operation) = state.withLock { ($0.queue[stored.id.rawValue], $0.queue.operation(stored.operation)) }
        if let known, known.hasSameRow(as: stored) { return }
        var entry = stored
        let now = core.now()
        if let known { entry.keepMoment(of: known) }
        if known == nil, let operation, entry.attempts > 0 {
            entry.due =
                now.uptime + operation.retry.backoffMaximum(attempt: entry.attempts) * core.configuration.random()
        }
        if known == nil || known?.refusal != entry.refusal {
            entry.leaveToOthers(known == nil ? operation : nil, at: now)
        }
        let adopted = entry
        state.withLock { $0.queue.put(adopted) }
        signal.put(())
        guard operation != nil, known?.isShownLike(entry) != true else { return }
        if let known, known.state != .rejected { hide(known, in: &update) }
        if let operation, entry.state != .rejected { showAgain(entry, operation, in: &update) }
    }

    /// Removes an operation that another process has carried out or dropped: its values are read from the store again. What is in this
    /// process's memory in place of the store lacks the result, and is stale.
    private func absorb(_ entry: Outbox.Entry, in update: inout CacheUpdate) {
        if let changes = shown(by: entry) {
            var lacking = CacheUpdate()
            for (key, _) in changes.overlays {
                update.local.append(.reread(key))
                if core.memoryRows.mayHave(key) { lacking.invalidate(key) }
            }
            if !lacking.steps.isEmpty { invalidateLater(lacking) }
            hide(changes, of: entry.id.rawValue, in: &update)
        }
        forget(entry)
        answer(entry.id.rawValue, .failure(Self.takenOver(entry.id)))
    }

    /// Makes values stale as soon as the locks that the caller holds are released.
    private func invalidateLater(_ update: CacheUpdate) {
        core.delayed.add { [core] in
            do { try core.commit(update, isTolerant: true) } catch {
                core.configuration.onEvent(.storageFailed(LarderError(error)))
            }
        }
    }

    static func takenOver(_ id: OperationID) -> LarderError {
        LarderError(
            .inDoubt,
            "Another process of this account has sent, changed or removed the operation, and its outcome is not known here. Read the value "
                + "that it changes.",
            operation: id
        )
    }

    // MARK: Changing rows

    /// Makes the update fail unless the row has the known input and key and is as expected: another process may have changed it.
    func require(
        _ entry: Outbox.Entry,
        in update: inout CacheUpdate,
        _ isAllowed: @escaping @Sendable (DiskOutboxRow) throws -> Bool
    ) {
        let (number, payload, key) = (entry.id.rawValue, entry.payload, entry.idempotencyKey)
        update.rows.append { transaction in
            let row = try transaction.outbox(after: number - 1, limit: 1).first
            guard let row, row.sequence == number, row.payload == payload, row.idempotencyKey == key, try isAllowed(row)
            else { throw Overtaken() }
        }
    }

    func store(_ row: DiskOutboxRow, in update: inout CacheUpdate) {
        update.rows.append { transaction in try transaction.update(row) }
    }

    /// Stores an operation with another input, and replaces what it shows.
    func replace(
        _ old: Outbox.Entry,
        by new: Outbox.Entry,
        _ operation: OutboxOperation,
        in update: inout CacheUpdate
    ) {
        store(new.row, in: &update)
        guard old.payload != new.payload else { return }
        hide(old, in: &update)
        showAgain(new, operation, in: &update)
    }

    /// Marks a batch as being sent before its first byte is sent: after process death its outcome is unknown. Temporary client IDs whose
    /// entities have server IDs by now are replaced.
    ///
    /// - Returns: the operations to send; none if another process has decided about one of them, and then they are taken again.
    func mark(_ batch: Batch, _ operation: OutboxOperation) throws -> [Outbox.Entry] {
        var update = CacheUpdate()
        update.mayUseReserve = true
        // Synced before the first byte leaves, and with it the earlier commit that holds the key: after a power loss an awaited
        // write that was sent must be found in doubt, and not as one that nobody has sent.
        update.durability = operation.isThrough ? .powerLoss : .processDeath
        let ids = state.withLock { $0.serverIDs }
        var marked = batch.entries
        for (index, taken) in batch.entries.enumerated() {
            marked[index].payload = renamed(taken.payload, ids[taken.scope], operation)
            require(taken, in: &update) { $0.state != Outbox.Entry.State.rejected.rawValue }
            replace(taken, by: marked[index], operation, in: &update)
        }
        do { core.announce(try core.carryOut(update)) } catch {
            guard Overtaken.isCause(of: error) else { throw error }
            // Under the lock, so that no reading of rows in progress has skipped them.
            core.outboxLock.withLock { _ in state.withLock { $0.giveBack(batch) } }
            return []
        }
        state.withLock { state in
            for entry in marked { state.queue.update(entry.id.rawValue) { $0.payload = entry.payload } }
        }
        // What is asked for from now on may be answered later than the operation is carried out.
        let sentAt = core.stamps.next()
        for index in marked.indices { marked[index].sentAt = sentAt }
        return marked
    }

    /// A payload with server IDs in place of temporary ones. If it cannot be replaced, the operation is sent unchanged, and the server
    /// decides.
    func renamed(_ payload: [UInt8], _ ids: [String: String], _ operation: OutboxOperation) -> [UInt8] {
        guard !ids.isEmpty else { return payload }
        do { return try operation.rename(payload, ids) } catch {
            report(error)
            return payload
        }
    }
}

/// The send locks.
extension Outbox {
    func turn(of kind: OutboxOperation.Kind) -> SendLock { kind == .long ? longTurn : turn }

    /// Enters both locks: then what is marked as being sent, and is not sent here, was sent by a process that has died.
    ///
    /// - Returns: whether it has; then `leaveAll` follows.
    func enterAll() throws -> Bool {
        let now = core.now().uptime
        guard try turn.enter(at: now) else { return false }
        var hasBoth = false
        defer { if !hasBoth { turn.leave() } }
        hasBoth = try longTurn.enter(at: now)
        return hasBoth
    }

    func leaveAll() { for lock in [turn, longTurn] { lock.leave() } }
}

/// The error of a transaction that finds a row which another process has changed.
struct Overtaken: Error {
    static func isCause(of error: any Error) -> Bool {
        error is Overtaken || (error as? LarderError)?.cause is Overtaken
    }
}
