import Synchronization

extension Outbox {
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
        // What another process has begun from there counts too.
        do { try adoptNew() } catch { throw LarderError(error) }
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
                payload: try OutboxOperation.encode(input, .json),
                changes: LocalChanges(),
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
