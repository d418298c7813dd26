import LarderEvents
import LarderTime
import Synchronization

extension Outbox {
    /// Waits until nothing is left to send except rejected operations, without a time limit.
    ///
    /// If the store fails, nothing can be sent until it is writable again: the call ends, and the operations stay and are retried
    /// automatically.
    ///
    /// - Throws: `.cancelled`, `.closed`; `.storage` with the error of the store; `.unregistered` and `.paused` if nothing can be sent
    /// before an operation is registered or `resume` is called.
    public func drained() async throws(LarderError) {
        let hasFailed = state.withLock { $0.storeFailure.take() != nil }
        await readRowsOfOthers()
        let statuses = statuses
        // The next attempt on the store may be far in the future.
        if hasFailed { clearDelays() }
        for await status in statuses {
            let (isClosed, failure) = state.withLock { ($0.isClosed, $0.storeFailure) }
            if isClosed { break }
            if status.isDrained, failure == nil { return }
            if status.inFlight == 0, let standstill = standstill() { throw standstill }
            if let failure {
                throw LarderError(
                    .storage,
                    "The outbox's store has failed. The operations stay and are retried. Wait again when the store can be "
                        + "written. (\(failure.description))",
                    cause: failure
                )
            }
        }
        throw LarderError(Task.isCancelled ? .cancelled : .closed, "The caller was cancelled, or the cache was closed.")
    }

    /// A process with nothing to send does not look for operations of others.
    private func readRowsOfOthers() async {
        await core.changing {
            do throws(LarderError) { try readRows() } catch {
                if !state.withLock({ $0.isClosed }) { noteStoreFailure(error) }
            }
        }
    }

    /// The error if no remaining operation can be sent before the app registers an operation or resumes; nil if one can, or if all of them wait
    /// for a decision about a rejected one.
    private func standstill() -> LarderError? {
        let (isPaused, isAtStandstill, names) = state.withLock { state in
            let isAtStandstill = state.queue.isAtStandstill
            return (state.isPaused, isAtStandstill, isAtStandstill ? state.queue.unregistered.keys.sorted() : [])
        }
        if isAtStandstill, !names.isEmpty {
            let list = names.map { "\"\($0)\"" }.joined(separator: ", ")
            return LarderError(
                .unregistered,
                "The outbox holds operations that are not registered: \(list). Put them into CacheConfiguration.operations when the cache is "
                    + "opened, or call Outbox.register."
            )
        }
        guard isPaused else { return nil }
        return LarderError(.paused, "The outbox is paused, or was never resumed. Call Outbox.resume, and wait again.")
    }

    /// Waits until everything that can be sent was sent, but no longer than a time limit, and than the store is held by another process: for
    /// the moments before an application is suspended.
    ///
    /// It returns early if no progress is possible within the time: the remaining operations are rejected or blocked, their next
    /// attempt is later, or the network may not be used. It does not change the schedule and does not resume a paused outbox.
    ///
    /// - Parameter limit: by the configuration's monotonic clock; not negative.
    /// - Returns: the remaining operations in the order of enqueuing, and why each was not sent.
    /// - Throws: `.cancelled`, `.closed`, `.invalidArgument`.
    @discardableResult
    public func drain(within limit: Duration) async throws(LarderError) -> [(
        entry: Outbox.Entry, reason: Outbox.Reason
    )] {
        guard limit >= .zero else {
            throw LarderError(
                .invalidArgument,
                "The limit of a drain is negative: \(limit). Pass zero or more."
            )
        }
        let end = core.now().uptime + limit
        await readRowsOfOthers()
        let statuses = statuses
        _ = await until(end, by: core.configuration.monotonicClock) {
            for await _ in statuses where !self.canMove(until: end) { return }
        }
        if Task.isCancelled { throw LarderError(.cancelled, "The caller was cancelled.") }
        if state.withLock({ $0.isClosed }) { throw LarderError(.closed, "The cache was closed or erased.") }
        return remainders(at: core.now().uptime)
    }

    /// Whether an operation may be sent or decided before a time without a call by the app.
    private func canMove(until end: MonotonicTime) -> Bool {
        let isOffline = !maySend
        return state.withLock { state in
            guard !state.isClosed else { return false }
            if state.queue.status.inFlight > 0 { return true }
            guard !state.isPaused, !isOffline else { return false }
            return state.queue.canMove(until: end)
        }
    }

    /// All operations, each with the reason why it would not have been sent by the time.
    private func remainders(at time: MonotonicTime) -> [(entry: Outbox.Entry, reason: Outbox.Reason)] {
        let isOffline = !maySend
        let delayed = Set(OutboxOperation.Kind.allCases.filter { turn(of: $0).retryAt != nil })
        return state.withLock { state in
            state.queue.sorted.map { ($0, state.reason(for: $0, at: time, isOffline: isOffline, delayed)) }
        }
    }
}

extension Outbox.State {
    fileprivate func reason(
        for entry: Outbox.Entry,
        at time: MonotonicTime,
        isOffline: Bool,
        _ delayed: Set<OutboxOperation.Kind>
    ) -> Outbox.Reason {
        if entry.state == .rejected { return .rejected }
        if entry.state == .sending { return .sending }
        let first = queue.head(of: entry.scope) ?? entry
        if first.state == .rejected { return .blocked }
        guard queue.operation(entry.operation) != nil, let next = queue.operation(first.operation) else {
            return .unregistered
        }
        if isPaused { return .paused }
        if isOffline { return .offline }
        if delayed.contains(next.kind) { return .elsewhere }
        return max(first.due, first.heldUntil) > time ? .postponed : .waiting
    }
}
