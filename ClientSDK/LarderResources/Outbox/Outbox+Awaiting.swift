import LarderEvents
import LarderStorage
import LarderTime
import Synchronization

extension Outbox {
    // MARK: Awaited operations

    /// Sends an operation and waits for its outcome.
    ///
    /// - Throws: the error of a rejection; `.offline` or `.untrusted` if nothing was sent, and then nothing has changed; `.inDoubt` with the operation
    /// if the outcome is unknown, also because the cache was closed or erased meanwhile; `.conflict` while an earlier operation of the
    /// scope is in doubt, or was rejected and blocks it; `.unregistered` while the first one is not registered; `.offline` also while the
    /// server delays it; `.paused` if the outbox is paused or was never resumed; `.cancelled` also if it was dropped before it was sent;
    /// `.outboxFull`; what `check` throws.
    ///
    /// - Parameter check: called before the operation is stored.
    func perform<Input, Receipt>(
        _ input: Input,
        _ operation: WriteThrough<Input, Receipt>,
        requiring check: (CacheCore) throws(LarderError) -> Void = { _ in }
    ) async throws(LarderError) -> Receipt {
        let untyped = OutboxOperation(operation)
        ensureRegistered(untyped)
        let scope = operation.scope(input)
        // Operations of the scope that another process has begun count too.
        try readRows()
        let obstacle = obstacle(to: operation.name, in: scope)
        if let obstacle, obstacle.code != .paused { throw obstacle }
        try check(core)
        if let obstacle { throw obstacle }
        let waiter = Waiter()
        let id: OperationID
        do {
            let changes = Outbox.LocalChanges(idempotencyKey: core.configuration.makeIdempotencyKey())
            let row = DiskOutboxRow(
                operation: operation.name,
                scope: scope,
                idempotencyKey: changes.idempotencyKey,
                payload: try OutboxOperation.encode(input, .json)
            )
            let stored = try put(row, untyped, changes, waiter: waiter) { _ in .keepBoth }
            guard let stored else { throw LarderError(.closed, "The outbox has kept nothing.") }
            id = stored
        } catch {
            throw LarderError(error)
        }
        let abandoned = Result<any Sendable, LarderError>.failure(Self.abandonedWait(id))
        // If the cache was closed meanwhile, nobody else answers.
        if state.withLock({ $0.isClosed }) { answer(id.rawValue, abandoned) }
        let result = await waiter.value(ifCancelled: abandoned) { answer(id.rawValue, abandoned) }
        guard let receipt = try result.get() as? Receipt else {
            throw LarderError(
                .unexpectedReply,
                "\"\(operation.name)\" was answered with a value that is not a \(Receipt.self)."
            )
        }
        return receipt
    }

    /// Whether the network and its behavior allow sending.
    var maySend: Bool { core.configuration.networkBehavior().sendsOutbox && core.configuration.mayUseNetwork() }

    /// Why an awaited write of a scope cannot be sent now, or behind others that are being sent; nil if it can. It is not kept until it can,
    /// because its caller waits.
    ///
    /// - Parameter id: the write, if it is stored: only operations before it count.
    private func obstacle(to operation: String, in scope: String, before id: Int64 = .max) -> LarderError? {
        guard maySend else {
            return LarderError(
                .offline,
                "\"\(operation)\" needs the network, which may not be used at present. Nothing was sent."
            )
        }
        do { try requireNotEnding(operation) } catch { return error }
        let (isPaused, doubt, first, known) = state.withLock { state in
            let earlier = state.queue.lane(scope).prefix { $0 < id }.compactMap { state.queue[$0] }
            return (
                state.isPaused,
                // While its caller waits, it is sent again soon.
                earlier.first { $0.isReportedInDoubt || $0.isInDoubt && state.waiters[$0.id.rawValue] == nil },
                earlier.first, earlier.first.flatMap { state.queue.operation($0.operation) }
            )
        }
        if let doubt {
            return LarderError(
                .conflict,
                "An earlier operation of \"\(scope)\" is in doubt. Wait until it is resolved: it is retried automatically.",
                operation: doubt.id
            )
        }
        if let first, let error = standstill(behind: first, known) { return error }
        guard isPaused else { return nil }
        return LarderError(
            .paused,
            "\"\(operation)\" was not sent: the outbox is paused, or was never resumed. Call Outbox.resume, and repeat it."
        )
    }

    /// Why nothing of a scope is sent for a time without a bound that a caller could wait for; nil if its first operation is in flight or is
    /// sent next.
    private func standstill(behind first: Outbox.Entry, _ operation: OutboxOperation?) -> LarderError? {
        if first.state == .rejected {
            return LarderError(
                .conflict,
                "An earlier operation of \"\(first.scope)\" was rejected and blocks it. Decide about it first: retry, edit or drop it.",
                operation: first.id
            )
        }
        guard let operation else {
            return LarderError(
                .unregistered,
                "An earlier operation of \"\(first.scope)\", \"\(first.operation)\", is not registered, so nothing behind it is sent. Put it "
                    + "into CacheConfiguration.operations when the cache is opened, or call Outbox.register.",
                operation: first.id
            )
        }
        // One whose caller waits in another process is expected to be sent soon.
        guard first.state == .pending, !operation.isThrough, first.heldUntil > core.now().uptime else { return nil }
        return LarderError(
            .offline,
            "An earlier operation of \"\(first.scope)\" is delayed, because the server has asked for it. Nothing was sent.",
            cause: first.error
        )
    }

    /// Ends the awaited writes that wait behind others and cannot be sent any more, as new ones are rejected: a payment must not be sent
    /// hours after it was made.
    ///
    /// - Throws: the error of the store.
    func endWaiting() throws(LarderError) {
        for entry in state.withLock({ $0.waiting }) {
            do {
                guard let obstacle = try obstacle(toWaiting: entry) else { continue }
                guard entry.state == .pending else {
                    answer(entry.id.rawValue, .failure(Self.doubt(entry, obstacle)))
                    continue
                }
                try remove(entry.id, as: entry, answering: obstacle)
            } catch {
                // Otherwise another process has it, or its caller has gone.
                if error.code != .invalidArgument { throw error }
            }
        }
    }

    private func obstacle(toWaiting entry: Outbox.Entry) throws(LarderError) -> LarderError? {
        func look() -> LarderError? { obstacle(to: entry.operation, in: entry.scope, before: entry.id.rawValue) }
        guard let found = look() else { return obstacle(toLate: entry) }
        guard found.code == .conflict else { return found }
        // What another process is sending looks in doubt. When this one has the turn, the other has ended or died.
        do { guard try enterAll() else { return nil } } catch { throw LarderError(error) }
        defer { leaveAll() }
        try readRows()
        return look()
    }

    /// The write has not been sent within the timeout of its operation, because another process has the turn all the time.
    private func obstacle(toLate entry: Outbox.Entry) -> LarderError? {
        guard let operation = state.withLock({ $0.queue.operation(entry.operation) }),
            core.now().wall - entry.enqueuedAt > operation.timeout
        else { return nil }
        return LarderError(
            .offline,
            "\"\(entry.operation)\" was not sent within \(operation.timeout), because others were. Repeat it."
        )
    }

    static func abandonedWait(_ id: OperationID) -> LarderError {
        LarderError(
            .inDoubt,
            "The call ended before the outcome was known. The operation is sent under its idempotency key until it is known, also "
                + "after the next start, unless the account was signed out.",
            operation: id
        )
    }
}
