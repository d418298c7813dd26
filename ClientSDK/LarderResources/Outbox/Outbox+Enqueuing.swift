import LarderEvents
import LarderStorage
import LarderTime
import Synchronization

extension Outbox {
    /// Enqueues an operation: it is durable and shown when this returns, and is sent when the network allows it.
    ///
    /// - Returns: the operation, or nil if it and an older one cancelled each other (`Outbox.Coalesced.cancelOut`).
    /// - Throws: `.storage` if it could not be stored, `.encoding`, `.closed`. Then nothing has changed.
    @discardableResult
    public func enqueue<Input, Receipt>(
        _ input: Input,
        _ operation: WriteBehind<Input, Receipt>
    ) throws(LarderError) -> OperationID? {
        core.owner.requireOutside("Outbox.enqueue")
        ensureRegistered(operation.name) { OutboxOperation(operation) }
        let coalesce = { (bytes: [UInt8]) -> Outbox.Coalesced<Input> in
            let old: Input
            // Another version of the application has stored it. It is reported when it is sent, and stops no new operation.
            do { old = try operation.codec.decode(bytes) } catch { return .keepBoth }
            return operation.coalesce(old, input)
        }
        do {
            // Of the input that is at hand: to decode it again would take as long as to store it.
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
                // An older operation was not sent while it was reserved.
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
                // Nobody is woken who would find that nothing may be sent: that takes as long as to store it.
                if !state.withLock({ $0.isPaused }) { signal.put(()) }
                return id
            }
        }
    }

    /// Puts an operation in, if it is known what becomes of an older one with its key.
    ///
    /// - Parameter merge: what was decided about the older one that was found before; it counts only if that is as it was.
    private func attempt(_ new: NewOperation, _ merge: Merge?) throws -> PutResult {
        var adopted: Commit?
        defer { if let adopted { core.announce(adopted) } }
        return try gate.withLock { _ -> PutResult in
            if let merge { release(merge.older.id) }
            var older = reserve(new)
            if let known = older, merge == nil {
                // What another process has put in behind it is newer: this must not become one with what is before that.
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
                    if let result = try carryOut(merge) { return result }
                } catch  where Overtaken.isCause(of: error) {
                    // Another process is sending it, or has: what comes now is another operation.
                }
            }
            let (id, commit) = try append(new)
            return .done(id, commit, .enqueued)
        }
    }

    /// Asks what becomes of two operations. Called outside of the gate, because it calls the user's functions.
    private func decide(
        _ new: NewOperation,
        _ older: Outbox.Entry,
        _ coalesce: ([UInt8]) throws -> Outbox.Coalesced<[UInt8]>
    ) throws -> Merge {
        let shown = shown(by: older)
        switch try coalesce(older.payload) {
        case .keepBoth: return Merge(older: older, shown: shown, kind: .keepBoth)
        case .replace(let payload):
            let changes = try new.operation.changes(payload)
            return Merge(older: older, shown: shown, kind: .replace(payload, changes))
        case .cancelOut:
            // Where it is not known that the server has what the new one wants, the new one is sent.
            let versions = versionsThatMeet(new.changes, without: older)
            let kind = versions.map { Merge.Kind.cancelOut($0) } ?? .replace(new.payload, new.changes)
            return Merge(older: older, shown: shown, kind: kind)
        }
    }

    /// The versions of the server's values that have what the changes ask for, together with what is pending besides the older
    /// operation. Nil where they do not have it, or this is not known: an operation before the older one may be carried out at any
    /// time, and another process may have ended it.
    private func versionsThatMeet(_ changes: Outbox.LocalChanges, without older: Outbox.Entry) -> [EntityKey: Int64]? {
        let isAlone = state.withLock { $0.lanes[older.scope] == [older.id.rawValue] }
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

    /// Has what follows happen only if the store still has the versions: another process may have stored newer ones, which memory
    /// does not know yet.
    private func require(_ versions: [EntityKey: Int64], in update: inout CacheUpdate) {
        guard core.disk != nil else { return }
        update.steps.append(
            .disk { transaction in
                for (key, version) in versions {
                    let stored = try transaction.read { reading in try reading.entity(key) }
                    guard stored?.version == version else { throw Overtaken() }
                }
            }
        )
    }

    /// - Returns: nil where both operations are to be kept.
    private func carryOut(_ merge: Merge) throws -> PutResult? {
        let old = merge.older
        var update = CacheUpdate()
        requireUntouched(old, in: &update)
        if let shown = merge.shown { hide(shown, of: old.id.rawValue, in: &update) }
        switch merge.kind {
        case .keepBoth: return nil
        case .replace(let payload, let changes):
            var new = old
            new.payload = payload
            let row = new.row
            if core.disk != nil { update.steps.append(.disk { transaction in try transaction.update(row) }) }
            show(changes, of: old.id.rawValue, in: &update)
            let commit = try core.carryOut(update)
            state.withLock { $0.entries[old.id.rawValue]?.payload = payload }
            return .done(old.id, commit, .coalesced)
        case .cancelOut(let versions):
            require(versions, in: &update)
            removeRow(of: old, in: &update)
            let commit = try core.carryOut(update)
            forget(old)
            return .done(nil, commit, .cancelled)
        }
    }

    /// The newest operation with the new one's coalescing key, if it was never sent; it is not sent until it is released.
    private func reserve(_ new: NewOperation) -> Outbox.Entry? {
        guard let key = new.coalescingKey else { return nil }
        return state.withLock { state in
            guard
                let id = state.lanes[new.scope]?.last(where: { state.entries[$0]?.coalescingKey == key }),
                let entry = state.entries[id], entry.operation == new.operation.name, entry.state == .pending,
                entry.attempts == 0
            else { return nil }
            state.entries[id]?.isReserved = true
            return entry
        }
    }

    private func release(_ id: OperationID) { state.withLock { $0.entries[id.rawValue]?.isReserved = false } }

    private func append(_ new: NewOperation) throws -> (OperationID?, Commit) {
        let name = new.operation.name
        var row = DiskOutboxRow(
            operation: name,
            scope: new.scope,
            coalescingKey: new.coalescingKey,
            idempotencyKey: new.idempotencyKey,
            payload: new.payload
        )
        row.enqueued = core.now().wall.nanosecondsSinceEpoch
        let given = SequenceBox()
        var update = CacheUpdate()
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
        for (key, apply) in new.changes.entities {
            update.steps.append(
                .overlay(key) { list in
                    Self.insert(Overlay(operation: given.value, apply: apply), into: &list)
                }
            )
        }
        for (key, apply) in new.changes.queries {
            update.steps.append(.queryOverlay(key) { $0.append(QueryOverlay(operation: given.value, apply: apply)) })
        }
        let commit = try core.carryOut(update)
        row.sequence = given.value
        let entry = Outbox.Entry(row)
        let now = core.now().uptime
        state.withLock { state in
            var added = entry
            if new.delay > .zero {
                // Others may come that can be sent with it; one that comes later waits no longer than the first.
                let waiting = state.entries.values.lazy
                    .filter { $0.operation == name && $0.attempts == 0 && $0.due > now }.map(\.due)
                added.due = min(waiting.min() ?? now + new.delay, now + new.delay)
            }
            state.entries[row.sequence] = added
            state.newestOwn = max(state.newestOwn, row.sequence)
            state.lanes[new.scope, default: []].append(row.sequence)
            // Together with the entry: a sender may carry it out at once.
            if let waiter = new.waiter { state.waiters[row.sequence] = waiter }
        }
        return (entry.id, commit)
    }
}

/// An operation that is being put in.
private struct NewOperation {
    let operation: OutboxOperation
    let scope: String
    let coalescingKey: String?
    let idempotencyKey: String
    let payload: [UInt8]
    let changes: Outbox.LocalChanges
    /// How long it may wait for others that can be sent with it.
    let delay: Duration
    let waiter: CheckedContinuation<Result<any Sendable, LarderError>, Never>?
}

/// What becomes of a new operation and an older one.
private struct Merge {
    enum Kind {
        case keepBoth
        case replace([UInt8], Outbox.LocalChanges)
        /// The versions by which it was decided.
        case cancelOut([EntityKey: Int64])
    }

    let older: Outbox.Entry
    /// What the older one shows, if it can be read.
    let shown: Outbox.LocalChanges?
    let kind: Kind
}

private enum PutResult {
    case done(OperationID?, Commit, CacheEvent.OutboxStep)
    /// An older operation was found, and reserved: somebody has to decide what becomes of both.
    case undecided(Outbox.Entry)
}

/// The number that the store gives to a row, once it has.
final class SequenceBox: Sendable {
    private let number = Mutex<Int64>(0)

    var value: Int64 { number.withLock { $0 } }

    func set(_ value: Int64) { number.withLock { $0 = value } }
}
