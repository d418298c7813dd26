import LarderEvents
import LarderStorage
import LarderTime
import Synchronization

extension Outbox {
    /// Enqueues an operation: it is durable and shown when this returns, and is sent when the network allows it.
    ///
    /// - Returns: the operation, or nil if it and an older one were both removed (`Outbox.Coalesced.removeBoth`).
    /// - Throws: `.storage` if it could not be stored, `.outboxFull`, `.encoding`, `.closed`. Then nothing has changed.
    @discardableResult
    public func enqueue<Input, Receipt>(
        _ input: Input,
        _ operation: WriteBehind<Input, Receipt>
    ) throws(LarderError) -> OperationID? {
        core.commits.requireOutside("Outbox.enqueue")
        let untyped = OutboxOperation(operation)
        ensureRegistered(untyped)
        do {
            // Made from the input itself: to decode the payload again would take as long as to store it.
            var changes = Outbox.LocalChanges(idempotencyKey: core.configuration.makeIdempotencyKey())
            operation.changes(input, &changes)
            let row = DiskOutboxRow(
                operation: operation.name,
                scope: operation.scope(input),
                coalescingKey: operation.coalescingKey(input),
                idempotencyKey: changes.idempotencyKey,
                payload: try OutboxOperation.encode(input, operation.codec)
            )
            return try put(row, untyped, changes) { bytes in
                let old: Input
                // Another version of the application stored it. The error is reported when it is sent, and does not affect
                // new operations.
                do { old = try operation.codec.decode(bytes) } catch { return .keepBoth }
                switch operation.coalesce(old, input) {
                case .keepBoth: return .keepBoth
                case .removeBoth: return .removeBoth
                case .replace(let merged): return .replace(try OutboxOperation.encode(merged, operation.codec))
                }
            }
        } catch {
            throw LarderError(error)
        }
    }

    func put(
        _ row: DiskOutboxRow,
        _ operation: OutboxOperation,
        _ changes: Outbox.LocalChanges,
        waiter: Waiter? = nil,
        coalesce: ([UInt8]) throws -> Outbox.Coalesced<[UInt8]>
    ) throws -> OperationID? {
        // The configuration's functions are the user's, so they are called before the outbox lock.
        let delay = operation.batchMaximum > 1 ? core.configuration.networkBehavior().batchDelay : .zero
        let new = NewOperation(operation: operation, row: row, changes: changes)
        let stored = try locked {
            try requireNotEnding(operation.name)
            return try withCurrentRows {
                try self.coalesce(new, by: coalesce) ?? append(new, delay: delay, waiter)
            }
        }
        tell(stored.step)
        // A paused outbox is not woken: a wake-up takes as long as storing the operation. It was paused just now if a caller waits.
        if waiter != nil || !state.withLock({ $0.isPaused }) { signal.put(()) }
        return stored.id
    }

    /// - Throws: `.closed` if the account is being signed out.
    func requireNotEnding(_ operation: String) throws(LarderError) {
        guard state.withLock({ $0.isEnding }) else { return }
        throw LarderError(
            .closed,
            "\"\(operation)\" was not stored: the account is being signed out. Repeat it after the next sign-in."
        )
    }

    /// Replaces or removes the newest operation with the new one's coalescing key, if it was never sent.
    ///
    /// - Returns: nil if the new operation must be stored as a separate one.
    private func coalesce(
        _ new: NewOperation,
        by decide: ([UInt8]) throws -> Outbox.Coalesced<[UInt8]>
    ) throws -> StoredOperation? {
        guard let key = new.row.coalescingKey,
            let old = state.withLock({ $0.queue.newest(in: new.row.scope, key: key) }),
            old.operation == new.operation.name, old.state == .pending, old.attempts == 0
        else { return nil }
        var update = CacheUpdate()
        require(old, in: &update) { $0.state == Outbox.Entry.State.pending.rawValue && $0.attempts == 0 }
        let newest = state.withLock { $0.queue.newest }
        update.rows.append { transaction in
            // Another process may have enqueued a later operation.
            guard try transaction.outbox(after: newest, limit: 1).isEmpty else { throw Overtaken() }
        }
        switch try decide(old.payload) {
        case .keepBoth: return nil
        case .removeBoth:
            removal(of: old, in: &update)
            core.announceLater(try core.carryOut(update))
            forget(old)
            return (nil, .cancelled)
        case .replace(let merged):
            let (payload, changes) = try renamed(merged, new, old.idempotencyKey)
            try requireRoom(operations: 0, bytes: payload.count - old.payload.count)
            var row = old.row
            row.payload = payload
            store(row, in: &update)
            hide(old, in: &update)
            show(changes, of: old.id.rawValue, in: &update)
            core.announceLater(try core.carryOut(update))
            state.withLock { $0.queue.update(old.id.rawValue) { $0.payload = payload } }
            return (old.id, .coalesced)
        }
    }

    /// A payload and its changes under a key, with server IDs in place of temporary ones whose entities have got them meanwhile.
    private func renamed(_ payload: [UInt8], _ new: NewOperation, _ key: String) throws -> (
        [UInt8], Outbox.LocalChanges
    ) {
        let current = renamed(payload, state.withLock { $0.serverIDs[new.row.scope] }, new.operation)
        let isNew = current == new.row.payload && key == new.changes.idempotencyKey
        return (current, isNew ? new.changes : try new.operation.changes(current, key))
    }

    /// Checks the bounds of the outbox. Called with the outbox lock held.
    ///
    /// - Throws: `.outboxFull` if the outbox must not grow by so much.
    func requireRoom(operations: Int, bytes: Int) throws(LarderError) {
        let limits = core.configuration
        let (count, size) = state.withLock { ($0.queue.count, $0.queue.bytes) }
        let remedy =
            "Nothing was stored. Wait until operations were sent (Outbox.drained), remove some (Outbox.drop), or raise the limit."
        guard operations <= 0 || count + operations <= limits.outboxOperationsMaximum else {
            throw LarderError(
                .outboxFull,
                "The outbox has \(count) operations, and CacheConfiguration.outboxOperationsMaximum is "
                    + "\(limits.outboxOperationsMaximum). \(remedy)"
            )
        }
        guard bytes <= 0 || size + bytes <= limits.outboxBytesMaximum else {
            throw LarderError(
                .outboxFull,
                "The operations in the outbox have \(size) bytes, \(bytes) more were to be stored, and "
                    + "CacheConfiguration.outboxBytesMaximum is \(limits.outboxBytesMaximum). \(remedy)"
            )
        }
    }

    /// Stores a new operation behind all others. The outbox lock is held.
    private func append(_ new: NewOperation, delay: Duration, _ waiter: Waiter?) throws -> StoredOperation {
        let (payload, changes) = try renamed(new.row.payload, new, new.row.idempotencyKey)
        var row = new.row
        row.payload = payload
        row.enqueued = core.now().wall.nanosecondsSinceEpoch
        try requireRoom(operations: 1, bytes: Outbox.Entry(row).bytes)
        let (number, commit) = try core.commitRow(row) { number in
            var update = CacheUpdate()
            show(changes, of: number, in: &update)
            return update.local
        }
        row.sequence = number
        let entry = Outbox.Entry(row)
        let now = core.now().uptime
        state.withLock { state in
            state.queue.append(entry, delay: delay, now: now)
            // Set together with the entry: the operation may be sent at once.
            if let waiter { state.waiters[number] = waiter }
        }
        core.announceLater(commit)
        return (entry.id, .enqueued)
    }
}

/// An operation that is being enqueued.
private struct NewOperation {
    let operation: OutboxOperation
    /// Without a number.
    let row: DiskOutboxRow
    let changes: Outbox.LocalChanges
}

/// What has become of an operation that was enqueued; without an ID, it is not in the outbox.
private typealias StoredOperation = (id: OperationID?, step: OutboxStep)
