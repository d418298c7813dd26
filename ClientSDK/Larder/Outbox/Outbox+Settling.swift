import LarderHTTP
import LarderTime
import Synchronization

extension Outbox {
    // MARK: What came of a batch

    /// Stores what came of a batch: in one commit, and each operation by itself where one of them brings what cannot be stored.
    func settle(_ batch: [OutboxEntry], _ results: [OutboxResult], _ operation: OutboxOperation) {
        let results = results.map { $0.refused(at: core.now().wall) }
        suspect(batch, results)
        var open = Array(zip(batch, results))[...]
        do {
            do {
                try store(open, operation)
                open = []
            } catch  where !Self.isOfStore(error) {
                while let (entry, result) = open.first {
                    try storeAlone(entry, result, operation)
                    open.removeFirst()
                }
            }
            state.withLock { $0.storeFailure = nil }
        } catch {
            // They are kept as being in doubt: sent again, they do nothing twice.
            noteStoreFailure(LarderError(error))
            for (entry, result) in open {
                postpone(entry, LarderError(error), operation, after: nil, isInDoubt: true)
                answerUnstored(entry, result, operation, LarderError(error))
            }
        }
        changed()
        signal.put(())
    }

    /// Settles operations whose rows could not be marked as being sent. Nothing has left, and another process may have changed the rows:
    /// nothing is written over them, and only an awaited write that nobody has begun to send is removed.
    func settleUnmarked(_ batch: [OutboxEntry], _ failure: LarderError, _ operation: OutboxOperation) {
        for entry in batch {
            if operation.isThrough, !entry.isInDoubt {
                var update = Update()
                require(entry, in: &update) { $0.state == OutboxEntry.State.pending.rawValue && $0.attempts == 0 }
                removal(of: entry, in: &update)
                do {
                    try core.commit(update)
                    finish(entry, .unsent(failure), operation)
                    continue
                } catch {
                    // It may be another process's by now, or the store still fails: it stays, and its caller cannot know more.
                    postpone(entry, failure, operation, after: nil, isInDoubt: false)
                    answerUnstored(entry, .unsent(failure), operation, LarderError(error))
                    continue
                }
            }
            postpone(entry, failure, operation, after: nil, isInDoubt: entry.isInDoubt)
        }
        changed()
        signal.put(())
    }

    /// Answers who waits for an operation whose end cannot be stored yet. It stays in the outbox and is sent again under its key, so only a
    /// success is certain to be the end.
    private func answerUnstored(
        _ entry: OutboxEntry,
        _ result: OutboxResult,
        _ operation: OutboxOperation,
        _ error: LarderError
    ) {
        if case .accepted(let receipt, _, _, _) = result { return answer(entry.id.rawValue, .success(receipt)) }
        answer(entry.id.rawValue, .failure(doubt(entry, operation, error)))
    }

    private func doubt(_ entry: OutboxEntry, _ operation: OutboxOperation, _ error: LarderError) -> LarderError {
        LarderError(
            .inDoubt,
            "It is not known yet whether \"\(operation.name)\" was carried out. It is asked for again under the same key, and does nothing "
                + "twice. (\(error.description))",
            cause: error,
            operation: entry.id
        )
    }

    /// Whether the store could not be written at all, whatever was to be written: it may be possible later.
    private static func isOfStore(_ error: any Error) -> Bool {
        let error = LarderError(error)
        guard error.code == .storage else { return error.code == .closed }
        switch (error.cause as? DiskError)?.code {
        case DiskError.Code.tooLarge, DiskError.Code.budget, DiskError.Code.transform: return false
        default: return true
        }
    }

    private func store(_ ends: ArraySlice<(OutboxEntry, OutboxResult)>, _ operation: OutboxOperation) throws {
        var update = Update()
        for (entry, result) in ends { try plan(entry, result, operation, &update) }
        try commit(update, ends.map { ($0, $1.names) })
        for (entry, result) in ends { finish(entry, result, operation) }
    }

    /// Stores what came of one operation. Where an acknowledgement cannot be stored, the operation ends all the same, because the server
    /// has done it: what the acknowledgement would have changed is declared stale.
    private func storeAlone(_ entry: OutboxEntry, _ result: OutboxResult, _ operation: OutboxOperation) throws {
        do { try store([(entry, result)], operation) } catch  where !Self.isOfStore(error) {
            guard case .accepted(_, let acknowledge, var visibleAt, let names) = result else { throw error }
            var acknowledged = Update()
            acknowledge(&acknowledged)
            var update = acknowledged.invalidatingItsKeys
            // The change stays visible until the server's value with it has come.
            visibleAt.merge(acknowledged.versions) { given, _ in given }
            removal(of: entry, visibleAt: visibleAt, in: &update)
            try commit(update, [(entry, names)])
            let text =
                "The server has carried out operation \(entry.id) (\"\(operation.name)\"), and its acknowledgement cannot be stored. The "
                + "operation has ended, and what it has changed is declared stale. (\(LarderError(error).description))"
            core.configuration.onEvent(.storageFailed(LarderError(.storage, text, cause: error, operation: entry.id)))
            finish(entry, result, operation)
        }
    }

    /// Commits what came of operations, and gives those that wait behind them the names that the server has given.
    private func commit(_ update: Update, _ names: [(entry: OutboxEntry, names: [String: String])]) throws {
        let names = names.filter { !$0.names.isEmpty }
        guard !names.isEmpty else { return try core.commit(update) }
        var adopted: Commit?
        defer { if let adopted { core.announce(adopted) } }
        // With the gate: nothing is put in or edited between reading the payloads and storing them.
        let commit = try gate.withLock { _ in
            // What another process has put in behind it gets the new names too.
            adopted = try adoptUnseen()
            var update = update
            var renamed: [OutboxEntry] = []
            for (entry, names) in names { renamed += rename(names, behind: entry, in: &update) }
            let commit = try core.carryOut(update)
            state.withLock { state in
                for entry in renamed { state.entries[entry.id.rawValue]?.payload = entry.payload }
            }
            return commit
        }
        core.announce(commit)
    }

    private func plan(
        _ entry: OutboxEntry,
        _ result: OutboxResult,
        _ operation: OutboxOperation,
        _ update: inout Update
    ) throws {
        switch result {
        case .accepted(_, let acknowledge, let visibleAt, _):
            // The server's value first: between the two nothing would be shown.
            acknowledge(&update)
            removal(of: entry, visibleAt: visibleAt, in: &update)
        case .rejected(let error, let refusal):
            if error.isUnreadableAcceptance {
                // The server has done it, and what it has now is not known here.
                for (key, _) in shown(by: entry)?.entities ?? [] { update.invalidate(key) }
            }
            if operation.isThrough { return removal(of: entry, in: &update) }
            var row = entry.row
            row.state = OutboxEntry.State.refused.rawValue
            store(row, in: &update)
            if let refusal {
                let bytes = try refusal.encoded(for: entry.idempotencyKey)
                update.setMetadata(bytes, for: OutboxRefusal.metadataKey(entry.id.rawValue))
            }
            hide(entry, in: &update)
        case .unsent:
            if operation.isThrough && !entry.isInDoubt { return removal(of: entry, in: &update) }
            var row = entry.row
            row.state = (entry.isInDoubt ? OutboxEntry.State.inDoubt : .pending).rawValue
            store(row, in: &update)
        case .retry:
            var row = entry.row
            row.state = OutboxEntry.State.inDoubt.rawValue
            store(row, in: &update)
        }
    }

    private func store(_ row: DiskOutboxRow, in update: inout Update) {
        update.mayUseReserve = true
        if core.disk != nil { update.steps.append(.disk { transaction in try transaction.update(row) }) }
    }

    /// Gives what waits behind an operation the names that the server has given.
    ///
    /// - Returns: the operations with other payloads than before; they are theirs when the update is committed.
    private func rename(
        _ names: [String: String],
        behind entry: OutboxEntry,
        in update: inout Update
    ) -> [OutboxEntry] {
        let waiting = state.withLock { state in
            (state.lanes[entry.scope] ?? []).filter { $0 != entry.id.rawValue }.compactMap { id in
                state.entries[id].flatMap { entry in state.operations[entry.operation].map { (entry, $0) } }
            }
        }
        var renamed: [OutboxEntry] = []
        for (old, operation) in waiting {
            var new = old
            do { new.payload = try operation.rename(old.payload, names) } catch {
                // It goes as it is, and the server decides.
                state.withLock { $0.problems.append(LarderError(error)) }
                continue
            }
            guard new.payload != old.payload else { continue }
            store(new.row, in: &update)
            hide(old, in: &update)
            showAgain(new, operation, in: &update)
            renamed.append(new)
        }
        return renamed
    }

    private func finish(_ entry: OutboxEntry, _ result: OutboxResult, _ operation: OutboxOperation) {
        let id = entry.id.rawValue
        switch result {
        case .accepted(let receipt, _, _, _):
            forget(entry)
            answer(id, .success(receipt))
            tell(.accepted)
            core.configuration.onEvent(.operation(operation.name, entry.id, .accepted))
        case .rejected(let error, let refusal):
            if operation.isThrough {
                forget(entry)
            } else {
                state.withLock { state in
                    state.entries[id]?.state = .refused
                    state.entries[id]?.error = error
                    state.entries[id]?.refusal = refusal
                    guard operation.whenRefused == .passOn else { return }
                    state.lanes[entry.scope]?.removeAll { $0 == id }
                    if state.lanes[entry.scope]?.isEmpty ?? false { state.lanes[entry.scope] = nil }
                }
            }
            answer(id, .failure(error))
            tell(.rejected)
            core.configuration.onEvent(.operation(operation.name, entry.id, .refused(error)))
        case .unsent(let error):
            if operation.isThrough && !entry.isInDoubt {
                forget(entry)
                return answer(id, .failure(error))
            }
            postpone(entry, error, operation, after: nil, isInDoubt: entry.isInDoubt)
        case .retry(let error, let after):
            postpone(entry, error, operation, after: after, isInDoubt: true)
            tell(.inDoubt)
            answer(id, .failure(doubt(entry, operation, error)))
        }
    }

    func answer(_ id: Int64, _ result: Result<any Sendable, LarderError>) {
        let waiter = state.withLock { state in
            let waiter = state.waiters.removeValue(forKey: id)
            if waiter != nil, case .failure(let error) = result, error.code == .inDoubt {
                state.entries[id]?.isReportedInDoubt = true
            }
            return waiter
        }
        waiter?.resume(returning: result)
    }

    /// Has an operation sent again later: full jitter, and never before the server wants it.
    private func postpone(
        _ entry: OutboxEntry,
        _ error: LarderError,
        _ operation: OutboxOperation,
        after asked: Duration?,
        isInDoubt: Bool
    ) {
        let longest = operation.retry.backoffMaximum(attempt: max(1, entry.attempts))
        let server = error.retryAfter.flatMap { RetryAfter($0, now: core.now().wall)?.wait(from: core.now().wall) }
        let least = max(asked ?? .zero, server ?? .zero)
        let wait = least + longest * core.configuration.random()
        let now = core.now().uptime
        let due = now + wait
        state.withLock { state in
            state.entries[entry.id.rawValue]?.state = isInDoubt ? .inDoubt : .pending
            state.entries[entry.id.rawValue]?.isInDoubt = isInDoubt
            state.entries[entry.id.rawValue]?.error = error
            if error.isUnreadableAcceptance { state.entries[entry.id.rawValue]?.unreadableReplies += 1 }
            state.entries[entry.id.rawValue]?.due = due
            if least > .zero { state.entries[entry.id.rawValue]?.heldUntil = now + least }
        }
        core.configuration.onEvent(.operation(operation.name, entry.id, .postponed(error, wait)))
    }

    /// Notes who was in a batch that failed as a whole although the server could be reached: one of them may be to blame.
    private func suspect(_ batch: [OutboxEntry], _ results: [OutboxResult]) {
        guard batch.count > 1, results.allSatisfy({ $0.mayBeSomebodysFault }) else { return }
        state.withLock { state in for entry in batch { state.entries[entry.id.rawValue]?.suspicion += 1 } }
    }
}

extension Update {
    /// Declares stale what this update would change.
    fileprivate var invalidatingItsKeys: Update {
        var update = Update()
        for step in steps {
            switch step {
            case .put(let draft, _, _, _): update.invalidate(draft.key)
            case .modify(let key, _), .remove(let key, _), .touch(let key, _, _), .invalidate(let key):
                update.invalidate(key)
            case .putQuery(let query, _): update.invalidate(query.key)
            case .insertNewest(let items): update.invalidate(items.timeline)
            case .editQuery(let key, _), .mergeQuery(let key, _), .touchQuery(let key, _, _), .removeQuery(let key),
                .invalidateQuery(let key):
                update.invalidate(key)
            case .invalidateTag: update.steps.append(step)
            case .token, .metadata, .disk, .overlay, .queryOverlay, .reread, .rereadQuery, .keepOffDisk: break
            }
        }
        return update
    }

    /// The versions of the entities that it stores.
    fileprivate var versions: [EntityKey: Int64] {
        steps.reduce(into: [:]) { versions, step in
            if case .put(let draft, _, _, _) = step { versions[draft.key] = draft.version }
        }
    }
}
