import LarderHTTP
import LarderTime
import Synchronization

extension Outbox {
    // MARK: Running

    /// Begins to send, now and whenever something is put in or its time has come, until `pause` or the end of the cache.
    public func resume() {
        state.withLock { state in
            guard !state.isClosed else { return }
            state.isPaused = false
            // After a pause nothing waits longer than for its own jitter.
            state.hurry()
            guard state.task == nil else { return }
            state.task = Task { [weak self, signal] in
                await withDiscardingTaskGroup { group in
                    repeat {
                        guard let batches = self?.takeReady() else { return }
                        for batch in batches { group.addTask { [weak self] in await self?.send(batch) } }
                    } while await signal.next() != nil
                }
            }
        }
        signal.put(())
    }

    /// Sends nothing more until `resume`. What is on its way is not recalled.
    public func pause() { state.withLock { $0.isPaused = true } }

    /// Sends what is due later now, unless the server has asked to wait: the network has returned.
    func hurry() {
        state.withLock { $0.hurry() }
        signal.put(())
    }

    /// Ends everything that runs. Operations stay.
    func close() {
        let (tasks, waiters) = state.withLock { state in
            state.isClosed = true
            defer {
                // They may hold whoever holds this cache: a source, and the session that authorises it.
                state.operations = [:]
                state.waiters = [:]
                state.task = nil
                state.timer = nil
            }
            return ([state.task, state.timer].compactMap { $0 }, Array(state.waiters.values))
        }
        signal.end()
        for task in tasks { task.cancel() }
        turn.close()
        for waiter in waiters {
            waiter.resume(returning: .failure(LarderError(.closed, "The cache was closed or erased.")))
        }
        changed()
    }

    /// The operations that can be sent now, in batches; they count as being sent, and each batch takes part in the turn.
    private func takeReady() -> [[OutboxEntry]] {
        let now = core.now().uptime
        let conduct = core.configuration.conduct()
        guard conduct.sendsOutbox, core.configuration.mayUseNetwork() else { return [] }
        let (isWorthwhile, next, hurries) = state.withLock { state -> (Bool, MonotonicTime?, Int) in
            guard !state.isPaused, !state.isClosed else { return (false, nil, 0) }
            let (ready, next) = state.ready(at: now, seen: .max)
            guard !ready.isEmpty || state.looksForOthers else { return (false, next, 0) }
            if let due = state.turnDue, now < due { return (false, due, 0) }
            return (true, next, state.hurries)
        }
        guard isWorthwhile else {
            wake(at: next)
            return []
        }
        do {
            guard try turn.enter() else {
                waitForTurn(now, hurries)
                return []
            }
        } catch {
            stall(now, hurries, error)
            return []
        }
        defer { turn.leave() }
        do { try adoptNew() } catch {
            stall(now, hurries, error)
            return []
        }
        // What whoever had the turn before was answered is shown from now on.
        core.lookForOthers()
        return take(now, conduct)
    }

    /// The store or the lock has failed: nothing is sent before it is known that nobody else does.
    private func stall(_ now: MonotonicTime, _ hurries: Int, _ error: any Error) {
        guard !state.withLock({ $0.isClosed }) else { return }
        noteStoreFailure(LarderError(error))
        waitForTurn(now, hurries)
        changed()
    }

    /// Tells that the store has failed, also to whoever waits for the outbox to be drained.
    private func noteStoreFailure(_ error: LarderError) {
        // Another process is writing, and will end.
        if (error.cause as? DiskError)?.code != .busy {
            state.withLock { state in
                state.storeFailure = error
                state.storeFailures += 1
            }
        }
        core.configuration.onEvent(.storageFailed(error))
    }

    private func take(_ now: MonotonicTime, _ conduct: DegradationPolicy.Conduct) -> [[OutboxEntry]] {
        let (batches, next) = state.withLock { state -> ([[OutboxEntry]], MonotonicTime?) in
            state.looksForOthers = false
            state.refusedTurns = 0
            state.turnDue = nil
            guard !state.isPaused, !state.isClosed else { return ([], nil) }
            let (ready, next) = state.ready(at: now, seen: state.lastSeen)
            var batches: [[OutboxEntry]] = []
            for (company, ids) in ready {
                // Those that may have made a batch fail are sent in ever smaller ones, until it is known which of them does.
                let largest = state.operations[company.operation]?.batchSize(conduct) ?? 1
                let size = max(1, largest >> min(company.suspicion, 30))
                let ids = ids.sorted()
                for start in stride(from: 0, to: ids.count, by: size) {
                    batches.append(
                        ids[start..<min(start + size, ids.count)].compactMap { id in
                            state.entries[id]?.state = .sending
                            state.entries[id]?.attempts += 1
                            return state.entries[id]
                        }
                    )
                }
            }
            return (batches, next)
        }
        for _ in batches { turn.share() }
        wake(at: next)
        return batches
    }

    func wake(at due: MonotonicTime?) {
        let sleeper = core.configuration.sleeper
        let signal = signal
        state.withLock { state in
            state.timer?.cancel()
            state.timer = due.map { due in
                Task {
                    do { try await sleeper.sleep(until: due) } catch { return }
                    signal.put(())
                }
            }
        }
    }

    // MARK: One batch

    private func send(_ taken: [OutboxEntry]) async {
        // Its place in the turn was taken with it.
        defer { turn.leave() }
        guard let first = taken.first, let operation = state.withLock({ $0.operations[first.operation] }) else {
            return
        }
        changed()
        let batch: [OutboxEntry]
        do {
            batch = try mark(taken, operation)
        } catch {
            noteStoreFailure(LarderError(error))
            let results = taken.map { _ in OutboxResult.unsent(LarderError(error)) }
            return settle(taken, results, operation, isStored: false)
        }
        guard !batch.isEmpty else { return signal.put(()) }
        for _ in batch { tell(.sent) }
        let results: [OutboxResult]
        do {
            results = try await within(
                operation.timeout,
                clock: core.configuration.monotonicClock,
                sleeper: core.configuration.sleeper
            ) {
                await operation.send(batch)
            }
        } catch {
            let text =
                "«\(operation.name)» was not answered within \(operation.timeout); it is sent again under the same key."
            results = batch.map { _ in .retry(LarderError(.timedOut, text, cause: error), after: nil) }
        }
        settle(batch, results, operation)
    }

    /// Stores what came of a batch: each operation by itself, so that nothing that one brings costs another its end.
    private func settle(
        _ batch: [OutboxEntry],
        _ results: [OutboxResult],
        _ operation: OutboxOperation,
        isStored: Bool = true
    ) {
        let results = results.map { $0.refused(at: core.now().wall) }
        suspect(batch, results)
        do {
            // What another process has put in behind it gets the new names too.
            if results.contains(where: { $0.hasNames }) { try adoptNew() }
            var update = Update()
            for (entry, result) in zip(batch, results) { try plan(entry, result, operation, &update) }
            try core.commit(update)
            if isStored { state.withLock { $0.storeFailure = nil } }
            for (entry, result) in zip(batch, results) { finish(entry, result, operation) }
        } catch {
            // It is kept as being in doubt: sent again, it does nothing twice.
            noteStoreFailure(LarderError(error))
            for entry in batch { postpone(entry, LarderError(error), operation, after: nil, isInDoubt: isStored) }
        }
        changed()
        signal.put(())
    }

    private func plan(
        _ entry: OutboxEntry,
        _ result: OutboxResult,
        _ operation: OutboxOperation,
        _ update: inout Update
    ) throws {
        switch result {
        case .accepted(_, let acknowledge, let visibleAt, let names):
            // The server's value first: between the two nothing would be shown.
            acknowledge(&update)
            removal(of: entry, visibleAt: visibleAt, in: &update)
            rename(names, behind: entry, in: &update)
        case .rejected(_, let refusal):
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
        if core.disk != nil { update.steps.append(.disk { transaction in try transaction.update(row) }) }
    }

    /// Gives what waits behind an operation the names that the server has given.
    private func rename(_ names: [String: String], behind entry: OutboxEntry, in update: inout Update) {
        guard !names.isEmpty else { return }
        let waiting = state.withLock { state in
            (state.lanes[entry.scope] ?? []).filter { $0 != entry.id.rawValue }.compactMap { id in
                state.entries[id].flatMap { entry in state.operations[entry.operation].map { (entry, $0) } }
            }
        }
        for (old, operation) in waiting {
            let payload: [UInt8]
            do { payload = try operation.rename(old.payload, names) } catch {
                // It goes as it is, and the server decides.
                core.configuration.onEvent(.storageFailed(LarderError(error)))
                continue
            }
            guard payload != old.payload else { continue }
            var new = old
            new.payload = payload
            store(new.row, in: &update)
            hide(old, in: &update)
            showAgain(new, operation, in: &update)
            state.withLock { $0.entries[old.id.rawValue]?.payload = payload }
        }
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
            let doubt = LarderError(
                .inDoubt,
                "Nobody knows yet whether «\(operation.name)» was carried out. It is asked for again under the same key, and "
                    + "does nothing twice. (\(error.description))",
                cause: error,
                operation: entry.id
            )
            answer(id, .failure(doubt))
        }
    }

    func answer(_ id: Int64, _ result: Result<any Sendable, LarderError>) {
        let waiter = state.withLock { $0.waiters.removeValue(forKey: id) }
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

extension Outbox.State {
    /// What is sent together.
    struct Company: Hashable {
        let operation: String
        let suspicion: Int
    }

    /// The first of each lane that can be sent now, and when the next can be.
    ///
    /// - Parameter seen: what has a larger number is not taken: others may have put something in before it.
    func ready(at now: MonotonicTime, seen: Int64) -> (ids: [Company: [Int64]], next: MonotonicTime?) {
        var ready: [Company: [Int64]] = [:]
        var next: MonotonicTime?
        for lane in lanes.values {
            guard let id = lane.first, id <= seen, let entry = entries[id], !entry.isReserved,
                entry.state == .pending || entry.state == .inDoubt, operations[entry.operation] != nil
            else { continue }
            let due = max(entry.due, entry.heldUntil)
            if due <= now {
                ready[Company(operation: entry.operation, suspicion: entry.suspicion), default: []].append(id)
            } else {
                next = min(next ?? due, due)
            }
        }
        return (ready, next)
    }

    /// Nothing waits longer than it has to.
    mutating func hurry() {
        for id in entries.keys { entries[id]?.due = MonotonicTime(nanoseconds: .min) }
        looksForOthers = true
        turnDue = nil
        hurries += 1
    }
}
