import LarderEvents
import LarderStorage
import LarderTime
import Synchronization

extension Outbox {
    // MARK: Running

    /// Starts sending, until `pause` or the end of the cache.
    public func resume() {
        state.withLock { state in
            guard !state.isClosed else { return }
            state.isPaused = false
            // After a pause operations are sent at once, unless the server asked to delay them.
            state.clearDelays()
            guard state.task == nil else { return }
            state.task = Task { [weak self, signal] in
                await withDiscardingTaskGroup { group in
                    repeat {
                        guard let batches = self?.takeReady() else { return }
                        for batch in batches {
                            group.addTask { [weak self] in
                                await self?.send(batch)
                                self?.end(batch)
                            }
                        }
                    } while await signal.next() != nil
                }
            }
        }
        signal.put(())
        tellUnregistered()
    }

    /// Reports operations whose name is not registered.
    private func tellUnregistered() {
        let counts = state.withLock { $0.isClosed ? [:] : $0.queue.unregistered }
        for (name, count) in counts.sorted(by: { $0.key < $1.key }) {
            core.configuration.onEvent(.unregistered(operation: name, count: count))
        }
    }

    /// Stops sending until `resume`. Operations in flight continue; awaited writes that wait behind them end with `.paused`.
    public func pause() {
        state.withLock { $0.isPaused = true }
        signal.put(())
        // Waiting `drained` calls end, because nothing is sent now.
        changed()
    }

    /// Stops sending, and rejects new operations: the account is being signed out. Operations that are being enqueued are stored first.
    package func end() {
        core.outboxLock.withLock { _ in state.withLock { $0.isEnding = true } }
        pause()
    }

    /// Sends delayed operations now, except those that the server asked to delay: the network has returned.
    func clearDelays() {
        state.withLock { $0.clearDelays() }
        signal.put(())
    }

    /// Stops all work. Operations stay in the store.
    func close() {
        let (tasks, waiters) = state.withLock { state in
            state.isClosed = true
            defer {
                // They may hold the owner of this cache, such as a source and its session.
                state.queue.removeOperations()
                state.waiters = [:]
                state.task = nil
                state.timer = nil
            }
            return ([state.task, state.timer].compactMap { $0 }, state.waiters)
        }
        signal.end()
        for task in tasks { task.cancel() }
        turn.close()
        // They may have been sent.
        for (id, waiter) in waiters { waiter.finish(.failure(Self.abandonedWait(OperationID(id)))) }
        changed()
    }

    /// Takes the operations that can be sent now, in batches, each of which uses the send lock.
    private func takeReady() -> [Batch] {
        endWaiting()
        guard maySend else { return [] }
        let now = core.now().uptime
        let behavior = core.configuration.networkBehavior()
        let limit = behavior.concurrency(core.configuration.concurrentSendsMaximum)
        let (isWorthwhile, next) = state.withLock { state -> (Bool, MonotonicTime?) in
            guard !state.isPaused, !state.isClosed else { return (false, nil) }
            // When a batch has ended, this is called again.
            guard state.hasWork(limit, at: now) || state.looksForOthers else {
                return (false, state.queue.nextDue(after: now))
            }
            if let due = state.lockRetryDue, now < due { return (false, due) }
            state.looksForOthers = false
            return (true, nil)
        }
        guard isWorthwhile else {
            wake(at: next)
            return []
        }
        do {
            guard try turn.enter() else {
                waitForSendLock(now)
                return []
            }
            defer { turn.leave() }
            // Without a pause in between: no operation is taken before those of other processes that precede it.
            let (batches, next) = try locked {
                try refreshRows()
                return state.withLock { $0.takeBatches(limit, at: now, behavior) }
            }
            for _ in batches { turn.share() }
            // Replies to the process that held the lock before are shown from now on.
            core.checkForeignCommits()
            wake(at: next)
            return batches
        } catch {
            stall(now, error)
            return []
        }
    }

    /// Handles an error of the store or the lock: nothing is sent while another process may be sending.
    func stall(_ now: MonotonicTime, _ error: any Error) {
        guard !state.withLock({ $0.isClosed }) else { return }
        let failure = LarderError(error)
        noteStoreFailure(failure)
        answerPending(failure)
        waitForSendLock(now)
        changed()
    }

    /// Answers the callers of awaited operations that cannot be sent because the store fails: nobody knows for how long.
    private func answerPending(_ failure: LarderError) {
        let waiting = state.withLock { state in
            state.waiters.keys.compactMap { state.queue[$0] }.filter { $0.state == .pending }
        }
        for entry in waiting {
            let text =
                "The store has failed before \"\(entry.operation)\" could be sent. It is sent under its idempotency key when the store "
                + "can be written. (\(failure.description))"
            answer(entry.id.rawValue, .failure(LarderError(.inDoubt, text, cause: failure, operation: entry.id)))
        }
    }

    /// Reports an error of the store, also to waiting `drained` calls.
    func noteStoreFailure(_ error: LarderError) {
        // `busy` is no failure: another process is writing, and will end.
        if (error.cause as? DiskError)?.code != .busy {
            state.withLock { state in
                state.storeFailure = error
                state.storeFailures += 1
            }
        }
        core.configuration.onEvent(.storageFailed(error))
    }

    func wake(at due: MonotonicTime?) {
        let sleeper = core.configuration.monotonicClock
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

    /// Makes room for the next batch.
    private func end(_ batch: Batch) {
        state.withLock { $0.batches[batch.number] = nil }
        signal.put(())
    }

    private func send(_ taken: Batch) async {
        // `takeReady` has added this batch as a user of the lock.
        defer { turn.leave() }
        guard let first = taken.entries.first, let operation = state.withLock({ $0.queue.operation(first.operation) })
        else {
            return
        }
        changed()
        var batch: [Outbox.Entry]
        do {
            batch = try mark(taken, operation)
        } catch {
            let failure = LarderError(error)
            // First the delay, then the report: a `drained` call that knows of the failure ends the delay.
            storeUnmarked(taken.entries, failure, operation)
            noteStoreFailure(failure)
            return changed()
        }
        guard !batch.isEmpty else {
            signal.put(())
            return
        }
        for _ in batch { tell(.sent) }
        let marked = batch
        let results: [OutboxResult]
        do {
            let carriedOut = try await within(
                operation.timeout,
                clock: core.configuration.monotonicClock,
                sleeper: core.configuration.monotonicClock
            ) {
                await self.sendRepeating(marked, operation)
            }
            batch = carriedOut.batch
            results = carriedOut.results
        } catch {
            let failure =
                error is TimeLimitExceeded
                ? LarderError(
                    .timedOut,
                    "\"\(operation.name)\" was not answered within \(operation.timeout). It is sent again under the same key.",
                    cause: error
                ) : LarderError(error)
            results = batch.map { _ in .retry(failure, after: nil) }
        }
        storeResults(batch, results, operation)
    }

    /// Sends a batch. While a caller waits for it, it is sent again under its key after a 429 or 503 with a short `Retry-After`.
    ///
    /// - Returns: the operations, in doubt if an attempt before the last one may have been carried out, and their results.
    private func sendRepeating(
        _ marked: [Outbox.Entry],
        _ operation: OutboxOperation
    ) async -> (batch: [Outbox.Entry], results: [OutboxResult]) {
        var batch = marked
        let clock = core.configuration.monotonicClock
        let count = batch.count == 1 ? "" : " × \(batch.count)"
        let number = batch.map(\.attempts).max() ?? 1
        let lostCopies = LostCopies()
        let reason = RequestReason(
            operation.name + count,
            cause: (operation.isThrough ? "an awaited write" : "a write of the outbox") + ", attempt \(number)",
            isOfStoredChange: true
        )
        let start = clock.uptime
        var attempt = 1
        while true {
            let sent = batch
            let outcomes = await LostCopies.$current.withValue(lostCopies) {
                await reason.around { await operation.send(sent) }
            }
            let results = zip(sent, outcomes).map { entry, result in
                entry.isInDoubt || !lostCopies.isEmpty ? result.afterDoubt(isAwaited: operation.isThrough) : result
            }
            guard operation.isThrough, batch.count == 1, let entry = batch.first, let asked = results.first?.shortPause,
                attempt < operation.retry.attemptsMaximum, mayRepeat(entry)
            else { return (batch, results) }
            let wait = asked + operation.retry.backoffMaximum(attempt: attempt) * core.configuration.random()
            // Otherwise the time limit would replace the server's answer and its pause.
            guard clock.uptime - start + wait < operation.timeout else { return (batch, results) }
            do { try await clock.sleep(until: clock.uptime + wait) } catch {
                // The time limit has ended, which is the result.
                return (batch, results)
            }
            guard mayRepeat(entry) else { return (batch, results) }
            // The server may have carried out what it, or a gateway before it, has answered with 503.
            batch[0].isInDoubt = true
            attempt += 1
        }
    }

    /// Whether a caller still waits for an operation, and it may be sent.
    private func mayRepeat(_ entry: Outbox.Entry) -> Bool {
        state.withLock { $0.waiters[entry.id.rawValue] != nil && !$0.isPaused && !$0.isClosed && !$0.isEnding }
    }
}
