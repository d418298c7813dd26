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
            for id in state.entries.keys { state.entries[id]?.due = MonotonicTime(nanoseconds: .min) }
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

    /// Sends what is due now without waiting for its time: the network has returned.
    func hurry() {
        state.withLock { state in
            for id in state.entries.keys { state.entries[id]?.due = MonotonicTime(nanoseconds: .min) }
        }
        signal.put(())
    }

    /// Waits until nothing is left to send, refused operations aside.
    ///
    /// - Throws: `.cancelled`, `.closed`.
    public func drained() async throws(LarderError) {
        for await status in statuses where status.isDrained { return }
        throw LarderError(Task.isCancelled ? .cancelled : .closed, "Nobody waits for the outbox any more.")
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
        for waiter in waiters {
            waiter.resume(returning: .failure(LarderError(.closed, "The cache was closed or erased.")))
        }
    }

    /// The operations that can be sent now, in batches; they count as being sent.
    private func takeReady() -> [[OutboxEntry]] {
        let now = core.now().uptime
        let conduct = core.configuration.conduct()
        let mayUseNetwork = conduct.sendsOutbox && core.configuration.mayUseNetwork()
        let (batches, next) = state.withLock { state -> ([[OutboxEntry]], MonotonicTime?) in
            guard !state.isPaused, !state.isClosed, mayUseNetwork else { return ([], nil) }
            var ready: [String: [Int64]] = [:]
            var next: MonotonicTime?
            for lane in state.lanes.values {
                guard let id = lane.first, let entry = state.entries[id], !entry.isReserved,
                    entry.state == .pending || entry.state == .inDoubt, state.operations[entry.operation] != nil
                else { continue }
                if entry.due <= now {
                    ready[entry.operation, default: []].append(id)
                } else {
                    next = min(next ?? entry.due, entry.due)
                }
            }
            var batches: [[OutboxEntry]] = []
            for (name, ids) in ready {
                let size = state.operations[name]?.batchSize(conduct) ?? 1
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
        wake(at: next)
        return batches
    }

    private func wake(at due: MonotonicTime?) {
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

    private func send(_ batch: [OutboxEntry]) async {
        guard let first = batch.first, let operation = state.withLock({ $0.operations[first.operation] }) else {
            return
        }
        changed()
        do {
            // Before the first byte leaves: if the process dies now, nobody knows whether it arrived.
            try mark(batch)
        } catch {
            core.configuration.onEvent(.storageFailed(LarderError(error)))
            let results = batch.map { _ in OutboxResult.unsent(LarderError(error)) }
            return settle(batch, results, operation, isStored: false)
        }
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

    private func mark(_ batch: [OutboxEntry]) throws {
        guard core.disk != nil else { return }
        let rows = batch.map(\.row)
        var update = Update()
        update.steps.append(.disk { transaction in for row in rows { try transaction.update(row) } })
        try core.commit(update)
    }

    /// Stores what came of a batch: each operation by itself, so that nothing that one brings costs another its end.
    private func settle(
        _ batch: [OutboxEntry],
        _ results: [OutboxResult],
        _ operation: OutboxOperation,
        isStored: Bool = true
    ) {
        var update = Update()
        for (entry, result) in zip(batch, results) { plan(entry, result, operation, &update) }
        do {
            try core.commit(update)
            for (entry, result) in zip(batch, results) { finish(entry, result, operation) }
        } catch {
            // It is kept as being in doubt: sent again, it does nothing twice.
            core.configuration.onEvent(.storageFailed(LarderError(error)))
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
    ) {
        switch result {
        case .accepted(_, let acknowledge, let visibleAt, let names):
            // The server's value first: between the two nothing would be shown.
            acknowledge(&update)
            removal(of: entry, visibleAt: visibleAt, in: &update)
            rename(names, behind: entry, in: &update)
        case .rejected:
            if operation.isThrough { return removal(of: entry, in: &update) }
            var row = entry.row
            row.state = OutboxEntry.State.refused.rawValue
            store(row, in: &update)
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
            guard let payload = try? operation.rename(old.payload, names), payload != old.payload else { continue }
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
        case .rejected(let error):
            if operation.isThrough {
                forget(entry)
            } else {
                state.withLock { state in
                    state.entries[id]?.state = .refused
                    state.entries[id]?.error = error
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

    private func answer(_ id: Int64, _ result: Result<any Sendable, LarderError>) {
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
        let wait = max(asked ?? .zero, server ?? .zero) + longest * core.configuration.random()
        let due = core.now().uptime + wait
        state.withLock { state in
            state.entries[entry.id.rawValue]?.state = isInDoubt ? .inDoubt : .pending
            state.entries[entry.id.rawValue]?.isInDoubt = isInDoubt
            state.entries[entry.id.rawValue]?.error = error
            state.entries[entry.id.rawValue]?.due = due
        }
        core.configuration.onEvent(.operation(operation.name, entry.id, .postponed(error, wait)))
    }

    // MARK: What is awaited

    /// Has an operation carried out, and waits for what came of it.
    ///
    /// - Throws: what it was refused with; `.offline` where it certainly was not sent, and then nothing has changed; `.inDoubt` with
    ///   the operation where nobody knows yet; `.conflict` while an older one of its scope is in doubt.
    func perform<Input, Receipt>(
        _ input: Input,
        _ operation: WriteThrough<Input, Receipt>
    ) async throws(LarderError) -> Receipt {
        ensureRegistered(operation.name) { OutboxOperation(operation) }
        guard core.configuration.mayUseNetwork() else {
            throw LarderError(
                .offline,
                "«\(operation.name)» needs the network, which may not be used at present. Nothing was sent."
            )
        }
        let scope = operation.scope(input)
        let doubt = state.withLock { state in
            (state.lanes[scope] ?? []).compactMap { state.entries[$0] }.first { $0.isInDoubt || $0.state == .inDoubt }
        }
        if let doubt {
            throw LarderError(
                .conflict,
                "An earlier operation of «\(scope)» is in doubt. Wait until it is resolved: it is asked for again by itself.",
                operation: doubt.id
            )
        }
        let id: OperationID?
        do {
            id = try put(
                OutboxOperation(operation),
                scope: scope,
                coalescingKey: nil,
                payload: try OutboxOperation.encode(input),
                coalesce: { _ in .keepBoth }
            )
        } catch {
            throw LarderError(error)
        }
        guard let id else { throw LarderError(.closed, "The outbox has kept nothing.") }
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in wait(for: id, continuation) }
        } onCancel: {
            cancelWait(for: id)
        }
        guard let receipt = try result.get() as? Receipt else {
            throw LarderError(
                .unexpectedReply,
                "«\(operation.name)» was answered with something else than a \(Receipt.self)."
            )
        }
        return receipt
    }

    private func wait(
        for id: OperationID,
        _ continuation: CheckedContinuation<Result<any Sendable, LarderError>, Never>
    ) {
        let isLate = state.withLock { state in
            guard !state.isClosed, state.entries[id.rawValue] != nil, !Task.isCancelled else { return true }
            state.waiters[id.rawValue] = continuation
            return false
        }
        guard isLate else { return }
        continuation.resume(returning: .failure(Self.gaveUp(id)))
    }

    private func cancelWait(for id: OperationID) { answer(id.rawValue, .failure(Self.gaveUp(id))) }

    private static func gaveUp(_ id: OperationID) -> LarderError {
        LarderError(
            .inDoubt,
            "Nobody waited for the operation's end. It is carried out all the same, or resolves itself.",
            operation: id
        )
    }
}
