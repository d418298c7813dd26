import LarderEvents
import LarderStorage
import LarderTime
import Synchronization

/// Decisions about rejected operations.
extension Outbox {
    /// Sends a rejected operation again with the same idempotency key.
    ///
    /// - Throws: `.invalidArgument` if the operation does not exist or is not rejected.
    public func retry(_ id: OperationID) throws(LarderError) { try reopen(try rejected(id), newKey: false) }

    /// Replaces the input of a rejected operation, and sends it with a new idempotency key.
    ///
    /// - Throws: as `retry`.
    public func edit<Input, Receipt>(
        _ id: OperationID,
        to input: Input,
        _ operation: WriteBehind<Input, Receipt>
    ) throws(LarderError) {
        let payload: [UInt8]
        do { payload = try OutboxOperation.encode(input, operation.codec) } catch { throw LarderError(error) }
        try reopen(try rejected(id), payload: payload, newKey: true)
    }

    /// Removes an operation that is not in flight, and rolls its local changes back. An operation in doubt may have been carried out: the
    /// values that it would change are stale then. A caller that waits for an awaited write gets `.cancelled` if nothing of it was sent.
    ///
    /// - Throws: `.invalidArgument` if the operation does not exist or is in flight; `.storage`.
    public func drop(_ id: OperationID) throws(LarderError) {
        try readRows()
        if let entry = state.withLock({ $0.queue[id.rawValue] }), entry.state == .inDoubt {
            var update = CacheUpdate()
            update.steps = effects(of: entry)?.invalidations ?? []
            // First: whatever becomes of this process in between, the values are asked for.
            try core.commit(update)
        }
        try remove(id, answering: Self.dropped(id))
    }

    /// Removes a rejected operation that was decided on, unless it has changed since.
    func drop(_ entry: Outbox.Entry) throws(LarderError) {
        try remove(entry.id, as: entry, answering: Self.dropped(entry.id))
    }

    private static func dropped(_ id: OperationID) -> LarderError {
        LarderError(.cancelled, "The operation was dropped, and nothing of it was sent.", operation: id)
    }

    /// Removes an operation that is not in flight.
    ///
    /// - Parameters:
    ///   - known: the operation that was decided on, which must not have changed since; nil: whatever has become of it.
    ///   - reason: for a caller that waits, if nothing was sent.
    func remove(
        _ id: OperationID,
        as known: Outbox.Entry? = nil,
        answering reason: LarderError
    ) throws(LarderError) {
        do {
            let hasTurn = try enterAll()
            defer { if hasTurn { leaveAll() } }
            try locked {
                try withCurrentRows {
                    let (found, hasCaller) = state.withLock { ($0.queue[id.rawValue], $0.waiters[id.rawValue] != nil) }
                    // A pending one was decided on because a caller waits for it. One who has gone was told that it will be sent.
                    guard let entry = found, entry.state != .sending, known?.hasSameRow(as: entry) != false,
                        known?.state != .pending || hasCaller
                    else { throw Self.isNotThere(id) }
                    var update = CacheUpdate()
                    require(entry, in: &update) { row in
                        // With the turn it was sent by a process that has died.
                        guard hasTurn || row.state != Outbox.Entry.State.sending.rawValue else {
                            throw Self.isNotThere(id)
                        }
                        return Outbox.Entry.State(stored: row.state) == entry.state
                    }
                    // An operation that is not registered may be one.
                    let isAwaited = state.withLock { $0.queue.operation(entry.operation)?.isThrough } ?? true
                    if isAwaited { failure(of: entry, in: &update) } else { removal(of: entry, in: &update) }
                    core.announceLater(try core.carryOut(update))
                    forget(entry)
                    answer(id.rawValue, .failure(entry.state == .pending ? reason : Self.takenOver(id)))
                }
            }
        } catch {
            throw LarderError(error)
        }
        tell(.cancelled)
        signal.put(())
    }

    private static func isNotThere(_ id: OperationID) -> LarderError {
        LarderError(
            .invalidArgument,
            "Operation \(id) does not exist, is not registered, is being sent, or was decided on; see `entries`."
        )
    }

    /// A rejected operation and the values that it would change, as all processes have left them; nil if it is not rejected.
    func readRejected(_ id: OperationID) throws(LarderError) -> Outbox.Entry? {
        try readRows()
        core.checkForeignCommits()
        return state.withLock { $0.queue[id.rawValue] }.flatMap { $0.state == .rejected ? $0 : nil }
    }

    func rejected(_ id: OperationID) throws(LarderError) -> Outbox.Entry {
        guard let entry = try readRejected(id) else { throw Self.isNotThere(id) }
        return entry
    }

    /// Sends a rejected operation again.
    ///
    /// - Parameter old: the operation that was decided on, which must not have changed since.
    func reopen(_ old: Outbox.Entry, payload: [UInt8]? = nil, newKey: Bool) throws(LarderError) {
        do {
            try locked { try withCurrentRows { try reopened(old, payload, newKey: newKey) } }
        } catch {
            throw LarderError(error)
        }
        signal.put(())
    }

    private func reopened(_ old: Outbox.Entry, _ payload: [UInt8]?, newKey: Bool) throws {
        let (current, operation) = state.withLock { ($0.queue[old.id.rawValue], $0.queue.operation(old.operation)) }
        guard let operation, current?.hasSameRow(as: old) == true else { throw Self.isNotThere(old.id) }
        var row = old.row
        (row.state, row.note) = (Outbox.Entry.State.pending.rawValue, nil)
        row.payload = payload ?? old.payload
        try requireRoom(operations: 0, bytes: row.payload.count - old.payload.count)
        if newKey { row.idempotencyKey = core.configuration.makeIdempotencyKey() }
        let new = Outbox.Entry(row)
        var update = CacheUpdate()
        require(old, in: &update) { $0.state == Outbox.Entry.State.rejected.rawValue }
        store(row, in: &update)
        showAgain(new, operation, in: &update)
        core.announceLater(try core.carryOut(update))
        state.withLock { $0.queue.put(new) }
    }
}
