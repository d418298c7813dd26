import LarderEvents
import LarderStorage
import LarderTime
import Synchronization

extension Outbox {
    /// Enqueues an operation: it is durable and shown when this returns, and is sent when the network allows it.
    ///
    /// - Returns: the operation, or nil if it and an older one cancelled each other (`Outbox.Coalesced`).
    /// - Throws: `.storage` if it could not be stored, `.outboxFull`, `.encoding`, `.closed`. Then nothing has changed.
    @discardableResult
    public func enqueue<Input, Receipt>(
        _ input: Input,
        _ operation: WriteBehind<Input, Receipt>
    ) throws(LarderError) -> OperationID? {
        core.owner.requireOutside("Outbox.enqueue")
        ensureRegistered(operation.name) { OutboxOperation(operation) }
        let coalesce = { (bytes: [UInt8]) -> Outbox.Coalesced<Input> in
            let old: Input
            // Another version of the application stored it. The error is reported when it is sent, and does not affect
            // new operations.
            do { old = try operation.codec.decode(bytes) } catch { return .keepBoth }
            return operation.coalesce(old, input)
        }
        do {
            // Made from the input itself: to decode the payload again would take as long as to store it.
            var changes = Outbox.LocalChanges()
            operation.changes(input, &changes)
            return try put(
                OutboxOperation(operation),
                scope: operation.scope(input),
                coalescingKey: operation.coalescingKey(input),
                payload: try OutboxOperation.encode(input, operation.codec),
                changes: changes
            ) { old in
                switch coalesce(old) {
                case .keepBoth: .keepBoth
                case .cancelOut: .cancelOut
                case .removeBoth: .removeBoth
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
        changes: Outbox.LocalChanges,
        waiter: CheckedContinuation<Result<any Sendable, LarderError>, Never>? = nil,
        coalesce: ([UInt8]) throws -> Outbox.Coalesced<[UInt8]>
    ) throws -> OperationID? {
        // The configuration's functions are the user's, so they are called before the gate.
        let new = NewOperation(
            operation: operation,
            scope: scope,
            coalescingKey: coalescingKey,
            idempotencyKey: core.configuration.makeIdempotencyKey(),
            payload: payload,
            changes: changes,
            delay: operation.batchMaximum > 1 ? core.configuration.networkBehavior().batchDelay : .zero,
            waiter: waiter
        )
        var merge: Merge?
        while true {
            let result: PutResult
            do { result = try attempt(new, merge) } catch {
                // Another operation may have been held back while the older one was reserved.
                signal.put(())
                throw error
            }
            switch result {
            case .undecided(let older):
                do { merge = try decide(new, older, coalesce) } catch {
                    release(older.id)
                    signal.put(())
                    throw error
                }
            case .done(let id, let commit, let step):
                core.announce(commit)
                changed()
                tell(step)
                // A paused outbox is not woken: a wake-up takes as long as storing the operation.
                if !state.withLock({ $0.isPaused }) { signal.put(()) }
                return id
            }
        }
    }

    /// - Throws: `.closed` if the account is being signed out.
    func requireNotEnding(_ operation: String) throws(LarderError) {
        guard state.withLock({ $0.isEnding }) else { return }
        throw LarderError(
            .closed,
            "\"\(operation)\" was not stored: the account is being signed out. Repeat it after the next sign-in."
        )
    }

    /// Enqueues an operation if there is no older one with its coalescing key, or if it is decided what becomes of
    /// both.
    ///
    /// - Parameter merge: the decision about the older operation. It counts only if that operation is unchanged.
    private func attempt(_ new: NewOperation, _ merge: Merge?) throws -> PutResult {
        var adopted: Commit?
        defer { if let adopted { core.announce(adopted) } }
        return try gate.withLock { _ -> PutResult in
            if let merge { release(merge.older.id) }
            try requireNotEnding(new.operation.name)
            var older = reserve(new)
            if let known = older, merge == nil {
                // Operations that another process has enqueued behind it are newer: the new one must not be coalesced
                // with one before them.
                release(known.id)
                adopted = try adoptUnseen()
                older = reserve(new)
            }
            if let older {
                guard let merge, merge.older.id == older.id, merge.older.payload == older.payload else {
                    return .undecided(older)
                }
                defer { release(older.id) }
                do {
                    if let result = try carryOut(merge, new.operation) { return result }
                } catch  where Overtaken.isCause(of: error) {
                    // Another process is sending it or has sent it: the new operation is enqueued as a separate one.
                }
            }
            let (id, commit) = try append(new)
            return .done(id, commit, .enqueued)
        }
    }

    /// Decides about two operations with one coalescing key. Called outside of the gate, because it calls user
    /// functions.
    private func decide(
        _ new: NewOperation,
        _ older: Outbox.Entry,
        _ coalesce: ([UInt8]) throws -> Outbox.Coalesced<[UInt8]>
    ) throws -> Merge {
        let shown = shown(by: older)
        switch try coalesce(older.payload) {
        case .keepBoth: return Merge(older: older, shown: shown, kind: .keepBoth)
        case .removeBoth: return Merge(older: older, shown: shown, kind: .cancelOut([:]))
        case .replace(let payload):
            let changes = try new.operation.changes(payload)
            return Merge(older: older, shown: shown, kind: .replace(payload, changes))
        case .cancelOut:
            // If the server's value is not known to have the new changes, the new operation is sent.
            let versions = versionsThatMeet(new.changes, without: older)
            let kind = versions.map { Merge.Kind.cancelOut($0) } ?? .replace(new.payload, new.changes)
            return Merge(older: older, shown: shown, kind: kind)
        }
    }

    /// The versions of the stored server values, if these values, with the pending changes of other operations applied,
    /// have the changes already. Nil if they do not, or if it is not known: an operation before the older one may be
    /// carried out at any time, and another process may have ended it.
    private func versionsThatMeet(_ changes: Outbox.LocalChanges, without older: Outbox.Entry) -> [EntityKey: Int64]? {
        let isAlone = state.withLock { state in
            let lane = state.queue.lane(older.scope)
            return lane.count == 1 && lane.first == older.id.rawValue
        }
        guard isAlone, changes.queries.isEmpty, !changes.checks.isEmpty else { return nil }
        var versions: [EntityKey: Int64] = [:]
        for check in changes.checks {
            guard let stored = core.entity(check.key, check.decode)?.stored, let version = stored.version,
                !stored.isInvalidated, !stored.times.isUncertain,
                !core.invalidations.covers(
                    [],
                    type: check.key.type,
                    validatedAt: stored.times.validatedAt,
                    order: stored.order
                )
            else { return nil }
            let others = core.entities.pending(check.key).filter { $0.operation != older.id.rawValue }
            guard check.isMet(others.reduce(stored.value) { $1.apply($0) }) else { return nil }
            versions[check.key] = version
        }
        return versions
    }

    /// Throws unless the store still has the versions: another process may have stored newer ones that are not in memory yet. A version
    /// that is stored after this check has the same effect as one that is stored after the operations have ended.
    private func require(_ versions: [EntityKey: Int64]) throws {
        guard let disk = core.contentDisk else { return }
        for (key, version) in versions {
            guard try disk.entity(key)?.version == version else { throw Overtaken() }
        }
    }

    /// - Returns: nil if both operations are kept.
    private func carryOut(_ merge: Merge, _ operation: OutboxOperation) throws -> PutResult? {
        let old = merge.older
        var update = CacheUpdate()
        requireUntouched(old, in: &update)
        if let shown = merge.shown { hide(shown, of: old.id.rawValue, in: &update) }
        switch merge.kind {
        case .keepBoth: return nil
        case .replace(let merged, let mergedChanges):
            let (payload, changes) = try renamed(merged, mergedChanges, operation, old.scope)
            var new = old
            new.payload = payload
            try requireRoom(operations: 0, bytes: payload.count - old.payload.count)
            let row = new.row
            update.rows.append { transaction in try transaction.update(row) }
            show(changes, of: old.id.rawValue, in: &update)
            let commit = try core.carryOut(update)
            state.withLock { $0.queue.update(old.id.rawValue) { $0.payload = payload } }
            return .done(old.id, commit, .coalesced)
        case .cancelOut(let versions):
            try require(versions)
            removeRow(of: old, in: &update)
            let commit = try core.carryOut(update)
            forget(old)
            return .done(nil, commit, .cancelled)
        }
    }

    /// A new payload and its changes with server IDs in place of the temporary ones whose entities have got them meanwhile.
    private func renamed(
        _ payload: [UInt8],
        _ changes: Outbox.LocalChanges,
        _ operation: OutboxOperation,
        _ scope: String
    ) throws -> ([UInt8], Outbox.LocalChanges) {
        let current = renamed(payload, state.withLock { $0.serverIDs[scope] }, operation)
        return current == payload ? (payload, changes) : (current, try operation.changes(current))
    }

    /// The newest operation with the new one's coalescing key, if it was never sent; it is not sent until it is released.
    private func reserve(_ new: NewOperation) -> Outbox.Entry? {
        guard let key = new.coalescingKey else { return nil }
        return state.withLock { state in
            guard let entry = state.queue.newest(in: new.scope, key: key), entry.operation == new.operation.name,
                entry.state == .pending, entry.attempts == 0
            else { return nil }
            state.queue.update(entry.id.rawValue) { $0.isReserved = true }
            return entry
        }
    }

    private func release(_ id: OperationID) {
        state.withLock { $0.queue.update(id.rawValue) { $0.isReserved = false } }
    }

    /// Checks the bounds of the outbox. Called with the gate held.
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

    private func append(_ given: NewOperation) throws -> (OperationID?, Commit) {
        var new = given
        (new.payload, new.changes) = try renamed(new.payload, new.changes, new.operation, new.scope)
        var row = DiskOutboxRow(
            operation: new.operation.name,
            scope: new.scope,
            coalescingKey: new.coalescingKey,
            idempotencyKey: new.idempotencyKey,
            payload: new.payload
        )
        row.enqueued = core.now().wall.nanosecondsSinceEpoch
        try requireRoom(operations: 1, bytes: Outbox.Entry(row).bytes)
        let number = SequenceBox()
        var update = CacheUpdate()
        if core.outboxDisk != nil {
            let stored = row
            update.rows.append { transaction in number.set(try transaction.append(stored)) }
        } else {
            number.set(
                state.withLock { state in
                    state.lastInMemory += 1
                    return state.lastInMemory
                }
            )
        }
        for (key, apply) in new.changes.entities {
            update.steps.append(
                .overlay(key) { list in
                    Self.insert(Overlay(operation: number.value, apply: apply), into: &list)
                }
            )
        }
        for (key, apply) in new.changes.queries {
            update.steps.append(.queryOverlay(key) { $0.append(QueryOverlay(operation: number.value, apply: apply)) })
        }
        let commit = try core.carryOut(update)
        row.sequence = number.value
        let entry = Outbox.Entry(row)
        let now = core.now().uptime
        state.withLock { state in
            state.queue.append(entry, delay: new.delay, now: now)
            state.newestOwn = max(state.newestOwn, row.sequence)
            // Set together with the entry: the operation may be sent at once.
            if let waiter = new.waiter { state.waiters[row.sequence] = waiter }
        }
        return (entry.id, commit)
    }
}

/// An operation that is being enqueued.
private struct NewOperation {
    let operation: OutboxOperation
    let scope: String
    let coalescingKey: String?
    let idempotencyKey: String
    var payload: [UInt8]
    var changes: Outbox.LocalChanges
    /// How long it may wait for others, to be sent with them.
    let delay: Duration
    let waiter: CheckedContinuation<Result<any Sendable, LarderError>, Never>?
}

/// The decision about a new operation and an older one.
private struct Merge {
    enum Kind {
        case keepBoth
        case replace([UInt8], Outbox.LocalChanges)
        /// The versions of the server values that the decision depends on.
        case cancelOut([EntityKey: Int64])
    }

    let older: Outbox.Entry
    /// The local changes of the older operation, if it can be decoded.
    let shown: Outbox.LocalChanges?
    let kind: Kind
}

private enum PutResult {
    case done(OperationID?, Commit, CacheEvent.OutboxStep)
    /// An older operation was found and reserved: `decide` has to be called.
    case undecided(Outbox.Entry)
}

/// The sequence number of a row, after the store has assigned it.
final class SequenceBox: Sendable {
    private let number = Mutex<Int64>(0)

    var value: Int64 { number.withLock { $0 } }

    func set(_ value: Int64) { number.withLock { $0 = value } }
}
