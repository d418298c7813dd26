import LarderEvents
import LarderStorage
import LarderTime
import Synchronization

extension Outbox {
    // MARK: Awaited operations

    /// Sends an operation and waits for its outcome.
    ///
    /// - Throws: the error of a rejection; `.offline` if nothing was sent, and then nothing has changed; `.inDoubt` with the operation
    /// if the outcome is unknown, also because the cache was closed or erased meanwhile; `.conflict` while an earlier operation of the
    /// scope is in doubt; `.paused` if the outbox is paused or was never resumed; `.outboxFull`; what `check` throws.
    ///
    /// - Parameter check: called before the operation is stored.
    func perform<Input, Receipt>(
        _ input: Input,
        _ operation: WriteThrough<Input, Receipt>,
        requiring check: (CacheCore) throws(LarderError) -> Void = { _ in }
    ) async throws(LarderError) -> Receipt {
        ensureRegistered(operation.name) { OutboxOperation(operation) }
        guard core.configuration.mayUseNetwork() else {
            throw LarderError(
                .offline,
                "\"\(operation.name)\" needs the network, which may not be used at present. Nothing was sent."
            )
        }
        let scope = operation.scope(input)
        try requireNotEnding(operation.name)
        // Operations of the scope that another process has begun count too.
        do { try readRows() } catch { throw LarderError(error) }
        let doubt = state.withLock { state in
            state.queue.lane(scope).compactMap { state.queue[$0] }.first { entry in
                entry.isInDoubt || entry.state == .inDoubt || entry.isReportedInDoubt
            }
        }
        if let doubt {
            throw LarderError(
                .conflict,
                "An earlier operation of \"\(scope)\" is in doubt. Wait until it is resolved: it is retried automatically.",
                operation: doubt.id
            )
        }
        try check(core)
        guard !state.withLock({ $0.isPaused }) else {
            throw LarderError(
                .paused,
                "\"\(operation.name)\" was not sent: the outbox is paused, or was never resumed. Call Outbox.resume, and repeat it."
            )
        }
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
            let stored = try put(row, OutboxOperation(operation), changes, waiter: waiter) { _ in .keepBoth }
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

    static func abandonedWait(_ id: OperationID) -> LarderError {
        LarderError(
            .inDoubt,
            "The call ended before the outcome was known. The operation is sent under its idempotency key until it is known, also "
                + "after the next start, unless the account was signed out.",
            operation: id
        )
    }
}
