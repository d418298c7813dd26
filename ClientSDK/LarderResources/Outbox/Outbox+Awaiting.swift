import LarderEvents
import LarderStorage
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
        let waiting = AwaitedOperation()
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in begin(input, operation, scope, waiting, continuation) }
        } onCancel: {
            if let id = waiting.cancel() { answer(id.rawValue, .failure(Self.abandonedWait(id))) }
        }
        guard let receipt = try result.get() as? Receipt else {
            throw LarderError(
                .unexpectedReply,
                "\"\(operation.name)\" was answered with a value that is not a \(Receipt.self)."
            )
        }
        return receipt
    }

    /// Enqueues an operation together with the continuation that waits for its result, because it may be sent as soon
    /// as it is enqueued.
    private func begin<Input, Receipt>(
        _ input: Input,
        _ operation: WriteThrough<Input, Receipt>,
        _ scope: String,
        _ waiting: AwaitedOperation,
        _ continuation: Waiter
    ) {
        do {
            let changes = Outbox.LocalChanges(idempotencyKey: core.configuration.makeIdempotencyKey())
            let row = DiskOutboxRow(
                operation: operation.name,
                scope: scope,
                idempotencyKey: changes.idempotencyKey,
                payload: try OutboxOperation.encode(input, .json)
            )
            let id = try put(row, OutboxOperation(operation), changes, waiter: continuation) { _ in .keepBoth }
            guard let id else { throw LarderError(.closed, "The outbox has kept nothing.") }
            // If the caller was cancelled or the cache was closed meanwhile, nothing else resumes the continuation.
            let isLate = !waiting.begin(id) || state.withLock { $0.isClosed }
            if isLate { answer(id.rawValue, .failure(Self.abandonedWait(id))) }
        } catch {
            continuation.resume(returning: .failure(LarderError(error)))
        }
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

/// Which operation a caller waits for, and whether the caller was cancelled. Safe from any thread.
private final class AwaitedOperation: Sendable {
    private struct State {
        var id: OperationID?
        var isCancelled = false
    }

    private let state = Mutex(State())

    /// - Returns: false if the caller was cancelled before.
    func begin(_ id: OperationID) -> Bool {
        state.withLock { state in
            state.id = id
            return !state.isCancelled
        }
    }

    /// - Returns: the operation, if it is enqueued already.
    func cancel() -> OperationID? {
        state.withLock { state in
            state.isCancelled = true
            return state.id
        }
    }
}
