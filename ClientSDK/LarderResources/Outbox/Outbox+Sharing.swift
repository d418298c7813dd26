import LarderEvents
import LarderStorage
import LarderTime
import Synchronization

/// Sharing of one outbox by several processes: the rows are authoritative, the process with the send lock sends, and the others read
/// the rows again.
extension Outbox {
    /// A caller that waits for the result of an operation.
    typealias Waiter = CheckedContinuation<Result<any Sendable, LarderError>, Never>

    static let lockRetry = RetryPolicy(base: .milliseconds(100), ceiling: .seconds(5))

    // MARK: Reading rows

    /// The operations of the rows after a number.
    static func entries(in disk: DiskStore, after number: Int64) throws -> [Outbox.Entry] {
        try disk.readOutbox(after: number) { transaction, rows in
            var read: [Outbox.Entry] = []
            for row in rows { read.append(try entry(row, in: transaction)) }
            return read
        }
    }

    /// The operation of a row, with what is stored beside it.
    private static func entry(
        _ row: DiskOutboxRow,
        in transaction: borrowing DiskStore.ReadTransaction
    ) throws -> Outbox.Entry {
        // A row that was never sent has nothing beside it.
        Outbox.Entry(row, note: row.attempts > 0 ? try transaction.metadata(DiskOutboxRow.noteKey(row.sequence)) : nil)
    }

    /// Makes the update fail unless the row is as expected: another process may have changed it.
    func require(
        _ entry: Outbox.Entry,
        in update: inout CacheUpdate,
        _ isAllowed: @escaping @Sendable (DiskOutboxRow) -> Bool
    ) {
        let payload = entry.payload
        let key = entry.idempotencyKey
        let number = entry.id.rawValue
        update.rows.append { transaction in
            let row = try transaction.read { reading in try reading.outbox(after: number - 1, limit: 1) }.first
            guard let row, row.sequence == number, row.payload == payload, row.idempotencyKey == key, isAllowed(row)
            else { throw Overtaken() }
        }
    }

    /// Makes the update fail if another process has sent or changed the operation or has enqueued later ones.
    func requireUntouched(_ entry: Outbox.Entry, in update: inout CacheUpdate) {
        require(entry, in: &update) { $0.state == Outbox.Entry.State.pending.rawValue && $0.attempts == 0 }
        let (seen, own) = state.withLock { state -> (Int64, Set<Int64>) in
            // Usually the rows of this process follow one another, and nothing is searched.
            let last = state.lastSeen
            return (
                last, state.newestOwn <= last ? [] : Set(state.queue.values.map(\.id.rawValue).filter { $0 > last })
            )
        }
        update.rows.append { transaction in
            let rows = try transaction.read { reading in try reading.outbox(after: seen, limit: own.count + 1) }
            guard rows.allSatisfy({ own.contains($0.sequence) }) else { throw Overtaken() }
        }
    }

    // MARK: Operations of other processes

    /// Reads the rows after the known ones. Called before sending, so that operations of other processes are in order with them.
    func adoptNew() throws {
        guard let commit = try lock.withLock({ _ in try adoptUnseen() }) else { return }
        core.announce(commit)
        changed()
    }

    /// The same with the outbox lock held; the caller announces the commit after releasing it.
    func adoptUnseen() throws -> Commit? {
        guard let disk = core.outboxDisk else {
            state.withLock { $0.lastSeen = .max }
            return nil
        }
        let known = state.withLock { $0.lastSeen }
        let entries = try Self.entries(in: disk, after: known)
        var update = CacheUpdate()
        update.isMemoryOnly = true
        for entry in entries where state.withLock({ $0.queue[entry.id.rawValue] == nil }) {
            adopt(entry, in: &update)
        }
        state.withLock { $0.noteSeen(upTo: entries.last?.id.rawValue) }
        return update.steps.isEmpty ? nil : try core.carryOutLocally(update)
    }

    /// Reads all rows again, and applies what other processes have done.
    func reconcile() throws {
        var waiters: [Waiter] = []
        defer { for waiter in waiters { waiter.resume(returning: .failure(Self.takenOver)) } }
        let commit = try lock.withLock { _ in try readAgain(&waiters) }
        if let commit { core.announce(commit) }
        changed()
    }

    /// The same with the outbox lock held; the caller announces the commit and answers the callers after releasing it. Operations in flight in
    /// this process stay as they are: only this process ends them.
    ///
    /// - Parameter waiters: gets the callers that wait for the results of operations which other processes have removed, also after an
    ///   error.
    func readAgain(_ waiters: inout [Waiter]) throws -> Commit? {
        guard let disk = core.outboxDisk else { return nil }
        // Before the rows are read: an operation that ends meanwhile is not taken for one of another process.
        let known = state.withLock { Set($0.queue.values.map(\.id)) }
        let entries = try Self.entries(in: disk, after: 0)
        let stored = Set(entries.map(\.id))
        let removed = state.withLock { $0.queue.values.filter { !stored.contains($0.id) && $0.state != .sending } }
        var update = CacheUpdate()
        waiters += removed.compactMap { absorb($0, in: &update) }
        for entry in entries {
            let current = state.withLock { $0.queue[entry.id.rawValue]?.state }
            if current.map({ $0 != .sending }) ?? !known.contains(entry.id) { adopt(entry, in: &update) }
        }
        state.withLock { $0.noteSeen(upTo: entries.last?.id.rawValue) }
        return update.steps.isEmpty ? nil : try core.carryOutLocally(update)
    }

    /// Applies the current state of a row, and wakes the sender, which schedules its next attempt.
    private func adopt(_ stored: Outbox.Entry, in update: inout CacheUpdate) {
        var entry = stored
        let (known, operation) = state.withLock { ($0.queue[entry.id.rawValue], $0.queue.operation(entry.operation)) }
        if let known {
            let isDecided = (known.state == .rejected) != (entry.state == .rejected)
            guard isDecided || known.payload != entry.payload || known.idempotencyKey != entry.idempotencyKey else {
                return
            }
            entry.due = known.due
            entry.heldUntil = known.heldUntil
            if operation != nil, known.state != .rejected { hide(known, in: &update) }
        } else {
            let moment = core.now()
            let now = moment.uptime
            entry.applyHold(at: moment)
            if let operation, entry.attempts > 0 {
                entry.due = now + operation.retry.backoffMaximum(attempt: entry.attempts) * core.configuration.random()
            }
            // A caller waits for its result in the other process, which is expected to send it within the timeout.
            if let operation, operation.isThrough, entry.state == .pending { entry.heldUntil = now + operation.timeout }
        }
        let adopted = entry
        state.withLock { $0.queue.put(adopted) }
        signal.put(())
        if let operation, entry.state != .rejected { showAgain(entry, operation, in: &update) }
    }

    /// Removes an operation that another process has carried out or dropped: its values are read from the store again.
    ///
    /// - Returns: the caller that waits for its result.
    private func absorb(_ entry: Outbox.Entry, in update: inout CacheUpdate) -> Waiter? {
        if let changes = shown(by: entry) {
            for (key, _) in changes.entities { update.steps.append(.reread(key)) }
            for (key, _) in changes.queries { update.steps.append(.rereadQuery(key)) }
        }
        hide(entry, in: &update)
        forget(entry)
        return state.withLock { $0.waiters.removeValue(forKey: entry.id.rawValue) }
    }

    static var takenOver: LarderError {
        LarderError(
            .inDoubt,
            "Another process of this account has sent, changed or removed the operation, and its outcome is not known here. Read the value "
                + "that it changes."
        )
    }

    /// Makes the next check read the rows of other processes, at once.
    func checkForeignCommits() {
        state.withLock { state in
            state.looksForOthers = true
            state.lockRetryDue = nil
            state.delayResets += 1
        }
        signal.put(())
    }

    // MARK: The send lock

    /// Another process is sending: reads its results, and tries the lock again later.
    ///
    /// - Parameter delayResets: the value of `delayResets` when the lock was requested.
    func waitForSendLock(_ now: MonotonicTime, _ delayResets: Int) {
        do { try reconcile() } catch {
            guard !state.withLock({ $0.isClosed }) else { return }
            core.configuration.onEvent(.storageFailed(LarderError(error)))
        }
        let random = core.configuration.random()
        let due = state.withLock { state in
            state.failedLockAttempts += 1
            let longest = Self.lockRetry.backoffMaximum(attempt: state.failedLockAttempts)
            // At least half of the delay is certain, so that the lock is never requested without a pause.
            let due = now + longest / 2 + longest / 2 * random
            if state.delayResets == delayResets { state.lockRetryDue = due }
            return due
        }
        wake(at: due)
    }

    /// Marks a batch as being sent before its first byte is sent: after process death its outcome is unknown. Temporary client IDs whose
    /// entities have server IDs by now are replaced.
    ///
    /// - Returns: the operations to send. The others were sent or decided about by another process, or the server has asked another
    ///   process to wait.
    func mark(_ batch: [Outbox.Entry], _ operation: OutboxOperation) throws -> [Outbox.Entry] {
        // Synced before the first byte leaves, and with it the earlier commit that holds the key: after a power loss an awaited
        // write that was sent must be found in doubt, and not as one that nobody has sent.
        let durability: DiskStore.Durability = operation.isThrough ? .powerLoss : .processDeath
        let now = core.now()
        let found = try core.writeRows(durability) { transaction in
            var rows: [Int64: Outbox.Entry] = [:]
            for entry in batch {
                let number = entry.id.rawValue
                let row = try transaction.read { reading in try reading.outbox(after: number - 1, limit: 1) }.first
                guard var row, row.sequence == number, row.operation == entry.operation, row.scope == entry.scope
                else { continue }
                let known = try transaction.read { [row] reading in try Self.entry(row, in: reading) }
                rows[number] = known
                guard known.state != .rejected, !entry.mustWait(for: known, at: now) else { continue }
                row.state = Outbox.Entry.State.sending.rawValue
                row.attempts = max(row.attempts + 1, Int64(entry.attempts))
                try transaction.update(row)
            }
            let ids = try transaction.read { reading in try reading.metadata(ServerIDs.metadataKey) }
            return (rows, ServerIDs(encoded: ids))
        }
        guard let (rows, ids) = found else {
            // Without a disk. Under the outbox lock: an operation that was being enqueued may have replaced or removed one of them.
            return lock.withLock { _ in state.withLock { state in batch.compactMap { state.queue[$0.id.rawValue] } } }
        }
        // No other process sends while this one holds the lock: a row that is marked as being sent is in doubt.
        let marked = batch.compactMap { entry -> Outbox.Entry? in
            guard let row = rows[entry.id.rawValue], row.state != .rejected, !entry.mustWait(for: row, at: now) else {
                return nil
            }
            var entry = entry
            entry.payload = row.payload
            // Another process may have edited the operation: for the server it is another one then.
            entry.idempotencyKey = row.idempotencyKey
            entry.attempts = max(row.attempts + 1, entry.attempts)
            entry.isInDoubt = entry.isInDoubt || row.isInDoubt
            entry.hold = row.hold
            return entry
        }
        let renamed = marked.map { entry in
            var entry = entry
            entry.payload = self.renamed(entry.payload, ids[entry.scope], operation)
            return entry
        }
        state.withLock { state in
            for entry in marked {
                state.queue.update(entry.id.rawValue) { known in
                    known.idempotencyKey = entry.idempotencyKey
                    known.attempts = entry.attempts
                    known.isInDoubt = entry.isInDoubt
                    known.hold = entry.hold
                }
            }
            for entry in batch {
                guard var row = rows[entry.id.rawValue], entry.mustWait(for: row, at: now) else { continue }
                row.applyHold(at: now)
                let held = row
                state.queue.update(entry.id.rawValue) { known in
                    known.state = held.state
                    known.attempts = held.attempts
                    known.isInDoubt = held.isInDoubt
                    known.hold = held.hold
                    known.heldUntil = held.heldUntil
                }
            }
        }
        let isAsKnown = batch.allSatisfy { entry in
            rows[entry.id.rawValue].map {
                $0.payload == entry.payload && $0.idempotencyKey == entry.idempotencyKey && $0.state != .rejected
            } ?? false
        }
        if !isAsKnown || zip(marked, renamed).contains(where: { $0.payload != $1.payload }) {
            try takeOver(renamed, from: marked, of: batch, rows, operation)
        }
        return renamed
    }

    /// A payload with server IDs in place of temporary ones. If it cannot be replaced, the operation is sent unchanged, and the server
    /// decides.
    func renamed(_ payload: [UInt8], _ ids: [String: String], _ operation: OutboxOperation) -> [UInt8] {
        guard !ids.isEmpty else { return payload }
        do { return try operation.rename(payload, ids) } catch {
            state.withLock { $0.problems.append(LarderError(error)) }
            return payload
        }
    }

    /// Applies rows that other processes have changed or removed, and stores payloads whose temporary IDs were replaced.
    private func takeOver(
        _ renamed: [Outbox.Entry],
        from marked: [Outbox.Entry],
        of batch: [Outbox.Entry],
        _ rows: [Int64: Outbox.Entry],
        _ operation: OutboxOperation
    ) throws {
        let decided = batch.filter { rows[$0.id.rawValue].map { $0.state == .rejected } ?? true }
        if !decided.isEmpty {
            // They are not in flight here.
            state.withLock { state in
                for entry in decided { state.queue.update(entry.id.rawValue) { $0.state = .pending } }
            }
            try reconcile()
        }
        var update = CacheUpdate()
        for (old, new) in zip(marked, renamed) where old.payload != new.payload {
            storePayload(new.payload, of: old, in: &update)
        }
        let taken = Dictionary(batch.map { ($0.id, $0) }, uniquingKeysWith: { $1 })
        for entry in renamed {
            guard let old = taken[entry.id], old.payload != entry.payload else { continue }
            hide(old, in: &update)
            showAgain(entry, operation, in: &update)
            state.withLock { $0.queue.update(entry.id.rawValue) { $0.payload = entry.payload } }
        }
        try core.commit(update)
        changed()
    }
}

extension Outbox.State {
    /// This process has stored a row.
    mutating func noteOwn(_ number: Int64) {
        newestOwn = max(newestOwn, number)
        // No other process has stored a row in between.
        if lastSeen == number - 1 { lastSeen = number }
    }

    /// All rows were read. Called with the outbox lock held: this process has enqueued nothing in between, and rows with smaller numbers
    /// existed before its own.
    mutating func noteSeen(upTo number: Int64?) {
        lastSeen = max(lastSeen, number ?? 0, newestOwn)
    }
}

/// The error of a transaction that finds a row which another process has changed.
struct Overtaken: Error {
    static func isCause(of error: any Error) -> Bool {
        error is Overtaken || (error as? LarderError)?.cause is Overtaken
    }
}

extension Outbox.Entry {
    /// Whether the server has asked another process to wait before it sends the operation again.
    fileprivate func mustWait(for row: Outbox.Entry, at now: Moment) -> Bool {
        guard row.state != .rejected, let stored = row.hold, stored.attempt != hold?.attempt else { return false }
        return stored.left(at: now.wall) > .zero
    }
}
