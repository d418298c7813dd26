import LarderEvents
import LarderStorage
import LarderTime
import Synchronization

extension Outbox {
    // MARK: Running

    /// Starts sending, until `pause` or the end of the cache.
    public func resume() {
        // After a pause operations are sent at once, unless the server asked to delay them.
        clearDelays()
        state.withLock { state in
            guard !state.isClosed else { return }
            state.isPaused = false
            guard state.task == nil else { return }
            state.task = Task { [weak self, signal] in
                await withDiscardingTaskGroup { group in
                    repeat {
                        guard let batches = await self?.takeReady() else { return }
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
        state.withLock { state in
            state.withoutSession = (0, MonotonicTime(nanoseconds: .min))
            state.queue.clearDelays()
            state.looksForOthers = true
        }
        for lock in [turn, longTurn] { lock.clearDelay() }
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
        for lock in [turn, longTurn] { lock.close() }
        // They may have been sent.
        for (id, waiter) in waiters { waiter.finish(.failure(Self.abandonedWait(OperationID(id)))) }
        changed()
    }

    /// Takes the operations that can be sent now, in batches, each of which uses its send lock, and plans when to look again.
    private func takeReady() async -> [Batch] { await core.changing { self.take() } }

    private func take() -> [Batch] {
        let now = core.now().uptime
        let limit = core.configuration.networkBehavior().concurrency(core.configuration.concurrentSendsMaximum)
        var batches: [Batch] = []
        do {
            try endWaiting()
            guard state.withLock({ !$0.isPaused && !$0.isClosed }) else {
                wake(at: nil)
                return []
            }
            guard maySend else { return [] }
            let isLookDue = turn.isDue(at: now)
            let (ready, looks) = state.withLock { state in
                defer { if isLookDue { state.looksForOthers = false } }
                return (state.ready(limit, at: now), isLookDue && state.looksForOthers)
            }
            let wanted = OutboxOperation.Kind.allCases.filter {
                ready.contains($0) && turn(of: $0).isDue(at: now)
            }
            // When a batch has ended, this is called again.
            if looks || !wanted.isEmpty { batches = try take(wanted, limit, at: now) }
        } catch { stall(now, error) }
        let (ready, looks, due) = state.withLock {
            ($0.ready(limit, at: now), $0.looksForOthers, $0.queue.nextDue(after: now))
        }
        let times = ready.map { turn(of: $0).retryAt } + [due, looks ? turn.retryAt : nil]
        wake(at: times.compactMap(\.self).min())
        return batches
    }

    private func take(_ wanted: [OutboxOperation.Kind], _ limit: Int, at now: MonotonicTime) throws -> [Batch] {
        var entered: Set<OutboxOperation.Kind> = []
        defer { for kind in entered { turn(of: kind).leave() } }
        for kind in wanted where try turn(of: kind).enter(at: now) { entered.insert(kind) }
        let (kinds, behavior) = (entered, core.configuration.networkBehavior())
        // Without a pause in between: no operation is taken before those of other processes that precede it.
        let batches = try locked {
            try refreshRows()
            return state.withLock { $0.takeBatches(of: kinds, limit, at: now, behavior) }
        }
        for batch in batches { turn(of: batch.kind).share() }
        for kind in entered { turn(of: kind).clearDelay() }
        // Replies to the process that held the lock before are shown from now on.
        core.checkForeignCommits()
        return batches
    }

    /// Handles an error of the store or the lock: nothing is sent while another process may be sending.
    private func stall(_ now: MonotonicTime, _ error: any Error) {
        guard !state.withLock({ $0.isClosed }) else { return }
        let failure = LarderError(error)
        noteStoreFailure(failure)
        // Nobody knows for how long it fails.
        for entry in state.withLock({ $0.waiting }) { answer(entry.id.rawValue, .failure(Self.doubt(entry, failure))) }
        state.withLock { $0.looksForOthers = true }
        for lock in [turn, longTurn] { lock.postpone(at: now) }
        changed()
    }

    /// Reports an error of the store, also to waiting `drained` calls.
    func noteStoreFailure(_ error: LarderError) {
        // `busy` is no failure: another process is writing, and will end.
        if (error.cause as? DiskError)?.code != .busy { state.withLock { $0.storeFailure = error } }
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
        // `take` has added this batch as a user of the lock.
        defer { turn(of: taken.kind).leave() }
        guard let operation = state.withLock({ $0.queue.operation(taken.entries[0].operation) }) else {
            return
        }
        changed()
        let batch = await core.changing { () async -> [Outbox.Entry] in
            do { return try self.mark(taken, operation) } catch {
                self.storeUnmarked(taken.entries, LarderError(error), operation)
                return []
            }
        }
        guard !batch.isEmpty else { return }
        for _ in batch { tell(.sent) }
        let lostCopies = LostCopies()
        let results: [OutboxResult]
        do {
            results = try await within(
                operation.timeout,
                clock: core.configuration.monotonicClock,
                sleeper: core.configuration.monotonicClock
            ) {
                await LostCopies.$current.withValue(lostCopies) {
                    await Self.reason(for: batch, operation).around { await operation.send(batch) }
                }
            }
        } catch {
            let failure =
                error is TimeLimitExceeded
                ? LarderError(
                    .timedOut,
                    "\"\(operation.name)\" was not answered within \(operation.timeout). It is sent again under the same key.",
                    cause: error
                ) : LarderError(error)
            results = batch.map { _ in .retry(failure) }
        }
        let meant = zip(batch, results).map { entry, result in
            entry.isInDoubt || !lostCopies.isEmpty
                ? result.afterDoubt(isAwaited: operation.isThrough) : result
        }
        await core.changing { self.storeResults(batch, meant, operation) }
    }

    private static func reason(for batch: [Outbox.Entry], _ operation: OutboxOperation)
        -> RequestReason
    {
        let number = batch.map(\.attempts).max() ?? 1
        return RequestReason(
            operation.name + (batch.count == 1 ? "" : " × \(batch.count)"),
            cause: (operation.isThrough ? "an awaited write" : "a write of the outbox")
                + ", attempt \(number)",
            isOfStoredChange: true
        )
    }
}
