import LarderEvents
import LarderStorage
import LarderTime
import Synchronization

extension Outbox {
    // MARK: Results of a batch

    /// Stores the results of a batch, first the server's values and then the rows; if a result cannot be stored, each in a commit of its own.
    func storeResults(_ batch: [Outbox.Entry], _ results: [OutboxResult], _ operation: OutboxOperation) {
        let now = core.now()
        suspect(batch, results)
        var open = Array(zip(batch, results))[...]
        do {
            do {
                try store(open, operation, now)
                open = []
            } catch  where !Self.isOfStore(error) {
                while let (entry, result) = open.first {
                    try storeAlone(entry, result, operation, now)
                    open.removeFirst()
                }
            }
            state.withLock { $0.storeFailure = nil }
        } catch {
            // They stay in doubt, and are sent again under their keys, without a second effect.
            noteStoreFailure(LarderError(error))
            for (entry, result) in open {
                invalidate(after: result)
                postpone(entry, LarderError(error), operation, after: .zero, isInDoubt: true)
                answerUnstored(entry, result, LarderError(error))
            }
        }
        changed()
    }

    /// Ends an attempt whose rows could not be marked as being sent: nothing was sent. Another process may have changed the rows, so they are not
    /// overwritten.
    func storeUnmarked(_ batch: [Outbox.Entry], _ failure: LarderError, _ operation: OutboxOperation) {
        for entry in batch {
            postpone(entry, failure, operation, after: .zero, isInDoubt: entry.isInDoubt)
            answerUnstored(entry, .unsent(failure), failure)
        }
        // First the delay, then the report: a `drained` call that knows of the failure ends the delay.
        noteStoreFailure(failure)
        changed()
    }

    /// The server has carried out an operation, and nothing can be stored: what memory has of the values that it has changed is stale.
    private func invalidate(after result: OutboxResult) {
        guard let invalidations = result.invalidations else { return }
        do { try core.commit(invalidations, isTolerant: true) } catch {
            core.configuration.onEvent(.storageFailed(error))
        }
    }

    /// Answers the caller of an operation whose result cannot be stored yet. The operation stays in the outbox and is sent again under
    /// its key, so only a success is final.
    private func answerUnstored(
        _ entry: Outbox.Entry,
        _ result: OutboxResult,
        _ error: LarderError
    ) {
        if case .accepted(let receipt, _, _) = result { return answer(entry.id.rawValue, .success(receipt)) }
        answer(entry.id.rawValue, .failure(Self.doubt(entry, error)))
    }

    static func doubt(_ entry: Outbox.Entry, _ error: LarderError) -> LarderError {
        LarderError(
            .inDoubt,
            "It is not known yet whether \"\(entry.operation)\" was carried out. It is sent again under the same key, without "
                + "a second effect. (\(error.description))",
            cause: error,
            operation: entry.id
        )
    }

    /// Whether the store could not be written at all, which may be possible later.
    private static func isOfStore(_ error: any Error) -> Bool {
        let error = LarderError(error)
        guard error.code == .storage else { return error.code == .closed }
        return (error.cause as? DiskError)?.isOfValue != true
    }

    private func store(
        _ ends: ArraySlice<(Outbox.Entry, OutboxResult)>,
        _ operation: OutboxOperation,
        _ now: Moment
    ) throws {
        var update = CacheUpdate()
        update.mayUseReserve = true
        for (entry, result) in ends { plan(entry, result, operation, now, &update) }
        try commit(update, ends.map { ($0, $1.names) })
        for (entry, result) in ends { finish(entry, result, operation, now) }
    }

    /// Stores the result of one operation. If an acknowledgement cannot be stored, the operation ends nevertheless, because the server
    /// has carried it out: the values that the acknowledgement would change are invalidated. A conflict whose state cannot be stored is
    /// stored without it.
    private func storeAlone(
        _ entry: Outbox.Entry,
        _ result: OutboxResult,
        _ operation: OutboxOperation,
        _ now: Moment
    ) throws {
        do { try store([(entry, result)], operation, now) } catch  where !Self.isOfStore(error) {
            if case .rejected(var rejection) = result, rejection.cause is Outbox.CurrentState {
                rejection.cause = nil
                return try store([(entry, .rejected(rejection))], operation, now)
            }
            guard let invalidations = result.invalidations else { throw error }
            let changes = shown(by: entry)
            func end(keeping accepted: [CacheUpdate.Step]) throws {
                var update = invalidations
                update.steps += accepted
                removal(of: entry, in: &update)
                try commit(update, [(entry, result.names)])
            }
            // The change stays visible until a value of the server that contains it is stored, if it can be applied to the stored value.
            do { try end(keeping: changes?.accepted ?? []) } catch  where !Self.isOfStore(error) {
                try end(keeping: changes?.invalidations ?? [])
            }
            let text =
                "The server has carried out operation \(entry.id) (\"\(operation.name)\"), and its acknowledgement cannot be stored. The "
                + "operation has ended, and the values that it changed are invalidated. (\(LarderError(error).description))"
            core.configuration.onEvent(.storageFailed(LarderError(.storage, text, cause: error, operation: entry.id)))
            finish(entry, result, operation, now)
        }
    }

    /// Commits results, and replaces temporary client IDs in waiting operations by server IDs.
    private func commit(_ update: CacheUpdate, _ names: [(entry: Outbox.Entry, names: [String: String])]) throws {
        let names = names.filter { !$0.names.isEmpty }
        if names.isEmpty {
            try core.commit(update)
            return
        }
        defer { core.delayed.deliver() }
        let commit = try core.carryOut(update) { [self] local, store in
            // Under the outbox lock, which is taken when the content is stored: this process enqueues and edits no operation between reading
            // the payloads and storing them. Operations that another process has enqueued behind it, or changed, get the server IDs too.
            try core.outboxLock.withLock { _ in
                try withCurrentRows { try storeRenamed(names, local, store) }
            }
        }
        core.announce(commit)
    }

    /// Stores results, and the server IDs in the operations behind them. The outbox lock is held.
    private func storeRenamed(
        _ names: [(entry: Outbox.Entry, names: [String: String])],
        _ local: CacheUpdate,
        _ store: (CacheUpdate) throws -> Void
    ) throws {
        var local = local
        var rewritten: [Outbox.Entry] = []
        let before = state.withLock { $0.serverIDs }
        var known = before
        for (entry, names) in names {
            rewritten += rename(names, behind: entry, in: &local)
            known.add(names, in: entry.scope)
        }
        let (serverIDs, encoded) = (known, try known.encoded())
        local.rows.append { transaction in try transaction.setMetadata(encoded, for: ServerIDs.metadataKey) }
        // Known before the creation is pending no longer (`LarderCache.isComing`).
        state.withLock { $0.serverIDs = serverIDs }
        do { try store(local) } catch {
            state.withLock { $0.serverIDs = before }
            throw error
        }
        state.withLock { state in
            for entry in rewritten { state.queue.update(entry.id.rawValue) { $0.payload = entry.payload } }
        }
    }

    private func plan(
        _ entry: Outbox.Entry,
        _ result: OutboxResult,
        _ operation: OutboxOperation,
        _ now: Moment,
        _ update: inout CacheUpdate
    ) {
        switch result {
        case .accepted(_, let acknowledge, _):
            let known = update.steps.count
            // The server's value is stored first: otherwise neither would be shown in between.
            acknowledge(&update)
            if update.steps.count == known { update.steps += shown(by: entry)?.accepted ?? [] }
            Self.date(&update.steps, from: known, entry)
            removal(of: entry, in: &update)
        case .rejected(let error):
            if let current = error.cause as? Outbox.CurrentState {
                let known = update.steps.count
                current.store(&update)
                Self.date(&update.steps, from: known, entry)
            } else if error.isUnreadableAcceptance || error.isOfOtherState {
                // What the server has now is not known.
                for key in effects(of: entry)?.entityKeys ?? [] { update.invalidate(key) }
            }
            if operation.isThrough { return failure(of: entry, in: &update) }
            store(entry, as: .rejected, Outbox.Rejection(error, of: entry, at: now.wall), in: &update)
            hide(entry, in: &update)
        case .unsent(let error):
            if operation.isThrough { return failure(of: entry, in: &update) }
            store(entry, as: .pending, refusal(of: entry, error, result.wait, now), in: &update)
        case .retry(let error):
            store(entry, as: .inDoubt, refusal(of: entry, error, result.wait, now), in: &update)
        }
    }

    /// Says how old the values of a reply are: as old as its request. After an attempt in doubt, it may be the stored reply to an earlier
    /// one, and older than what the change feed has covered since: what it stores is stale, and what it removes may have been created again.
    private static func date(_ steps: inout [CacheUpdate.Step], from first: Int, _ entry: Outbox.Entry) {
        for index in first..<steps.count {
            switch steps[index] {
            case .put(var draft, let validator, let stated):
                draft.sentAt = entry.sentAt
                steps[index] = .put(draft, validator: validator, stated: stated)
                if entry.isInDoubt { steps.append(.invalidate(.entity(draft.key))) }
            case .remove(let key, nil) where entry.isInDoubt: steps[index] = .invalidate(.entity(key))
            case .modify(let key, var modifier):
                modifier.sentAt = entry.sentAt
                steps[index] = .modify(key, modifier)
                if entry.isInDoubt { steps.append(.invalidate(.entity(key))) }
            case .changeList(let key, var change):
                change.sentAt = entry.sentAt
                steps[index] = .changeList(key, change)
                if entry.isInDoubt { steps.append(.invalidate(.query(key))) }
            default: break
            }
        }
    }

    private func store(
        _ entry: Outbox.Entry,
        as newState: Outbox.Entry.State,
        _ refusal: Outbox.Rejection?,
        in update: inout CacheUpdate
    ) {
        var new = entry
        (new.state, new.refusal) = (newState, refusal)
        store(new.row, in: &update)
    }

    /// What is kept of a failed attempt for other processes; nil if the server has not asked to wait.
    private func refusal(
        of entry: Outbox.Entry,
        _ error: LarderError,
        _ wait: Duration,
        _ now: Moment
    ) -> Outbox.Rejection? {
        wait > .zero ? Outbox.Rejection(error, of: entry, at: now.wall, wait: wait) : nil
    }

    /// Replaces temporary client IDs in the operations behind one.
    ///
    /// - Returns: the operations with new payloads, which are valid when the update is committed.
    private func rename(
        _ names: [String: String],
        behind entry: Outbox.Entry,
        in update: inout CacheUpdate
    ) -> [Outbox.Entry] {
        let waiting = state.withLock { state in
            state.queue.lane(entry.scope).filter { $0 != entry.id.rawValue }.compactMap { id in
                state.queue[id].flatMap { entry in state.queue.operation(entry.operation).map { (entry, $0) } }
            }
        }
        var rewritten: [Outbox.Entry] = []
        for (old, operation) in waiting {
            var new = old
            new.payload = renamed(old.payload, names, operation)
            guard new.payload != old.payload else { continue }
            require(old, in: &update) { Outbox.Entry.State(stored: $0.state) == old.state }
            replace(old, by: new, operation, in: &update)
            rewritten.append(new)
        }
        return rewritten
    }

    private func finish(_ entry: Outbox.Entry, _ result: OutboxResult, _ operation: OutboxOperation, _ now: Moment) {
        let id = entry.id.rawValue
        switch result {
        case .accepted(let receipt, _, _):
            // Reported first: who sees that the outbox is empty has been told what has become of its operations.
            core.configuration.onEvent(.accepted(operation: operation.name, entry.id))
            forget(entry)
            answer(id, .success(receipt))
            tell(.accepted)
        case .rejected(let error):
            if operation.isThrough {
                forget(entry)
            } else {
                state.withLock { state in
                    state.queue.update(id) { entry in
                        entry.state = .rejected
                        entry.error = error
                        entry.refusal = Outbox.Rejection(error, of: entry, at: now.wall)
                    }
                }
            }
            answer(id, .failure(error))
            tell(.rejected)
            core.configuration.onEvent(.rejected(operation: operation.name, entry.id, error))
        case .unsent(let error):
            if operation.isThrough {
                forget(entry)
                return answer(id, .failure(error))
            }
            postpone(entry, error, operation, after: result.wait, isInDoubt: false)
        case .retry(let error):
            postpone(entry, error, operation, after: result.wait, isInDoubt: true)
            tell(.inDoubt)
            // A caller can wait for a short pause that the server has asked for.
            if error.asksForShortPause, entry.attempts < operation.retry.attemptsMaximum { return }
            answer(id, .failure(Self.doubt(entry, error)))
        }
    }

    func answer(_ id: Int64, _ result: Result<any Sendable, LarderError>) {
        let waiter = state.withLock { state in
            let waiter = state.waiters.removeValue(forKey: id)
            if waiter != nil, case .failure(let error) = result, error.code == .inDoubt {
                state.queue.update(id) { $0.isReportedInDoubt = true }
            }
            return waiter
        }
        waiter?.finish(result)
    }

    /// Schedules a retry: full jitter, and not before the server has asked for it.
    private func postpone(
        _ entry: Outbox.Entry,
        _ error: LarderError,
        _ operation: OutboxOperation,
        after least: Duration,
        isInDoubt: Bool
    ) {
        let (now, jitter) = (core.now(), core.configuration.random())
        let refusal = refusal(of: entry, error, least, now)
        let wait = state.withLock { state in
            // Without a session nothing can be sent: all operations wait together, longer each time that one of them was tried.
            let isUnauthorized = error.code == .unauthorized
            var known = state.withoutSession
            if !isUnauthorized {
                known.count = 0
            } else if now.uptime >= known.until {
                known.count += 1
            }
            let longest = operation.retry.backoffMaximum(attempt: max(1, entry.attempts, known.count))
            let wait = least + longest * jitter
            if isUnauthorized {
                known.until = max(known.until, now.uptime + wait)
                state.queue.delay(until: known.until)
            }
            state.withoutSession = known
            state.queue.update(entry.id.rawValue) { entry in
                entry.state = isInDoubt ? .inDoubt : .pending
                entry.isInDoubt = isInDoubt
                entry.error = error
                if error.isUnreadableAcceptance { entry.unreadableReplies += 1 }
                entry.due = now.uptime + wait
                if least > .zero { entry.heldUntil = now.uptime + least }
                entry.refusal = refusal
            }
            return wait
        }
        core.configuration.onEvent(.postponed(operation: operation.name, entry.id, error, wait))
    }

    /// Counts a failed batch for each of its operations: one of them may have caused the failure.
    private func suspect(_ batch: [Outbox.Entry], _ results: [OutboxResult]) {
        guard batch.count > 1, results.allSatisfy({ $0.mayBeCausedByOneOperation }) else { return }
        state.withLock { state in
            for entry in batch { state.queue.update(entry.id.rawValue) { $0.failureCount += 1 } }
        }
    }
}

extension LarderError {
    /// Whether the server has said that it has another state than the write was made from: another value, or none.
    fileprivate var isOfOtherState: Bool {
        [ErrorCode<LarderError>.conflict, .gone].contains(code)
            || status.map { [404, 409, 410, 412].contains($0) } ?? false
    }
}
