import LarderEvents
import LarderStorage
import LarderTime
import Synchronization

/// Decisions about rejected operations.
extension Outbox {
    /// Sends a rejected operation again with the same idempotency key.
    ///
    /// - Throws: `.invalidArgument` if the operation does not exist or is not rejected.
    public func retry(_ id: OperationID) throws(LarderError) { try reopen(id, payload: nil, newKey: false) }

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
        try reopen(id, payload: payload, newKey: true)
    }

    /// Removes an operation that is not in flight, and rolls its local changes back. An operation in doubt may have been carried out.
    ///
    /// - Throws: `.invalidArgument` if the operation does not exist or is in flight.
    public func drop(_ id: OperationID) throws(LarderError) {
        try remove(id, from: [.pending, .inDoubt, .rejected])
    }

    /// Removes an operation that has one of some states.
    func remove(_ id: OperationID, from states: Set<Outbox.Entry.State>) throws(LarderError) {
        do {
            // This process holds the send lock, so no other process sends the operations that are marked as being sent.
            let hasTurn = try turn.enter()
            defer { if hasTurn { turn.leave() } }
            try locked {
                try withCurrentRows {
                    let found = state.withLock { $0.queue[id.rawValue] }
                    guard let entry = found, states.contains(entry.state) else { throw Self.isNotThere(id) }
                    var update = CacheUpdate()
                    require(entry, in: &update) { row in
                        // With the turn it was sent by a process that has died.
                        guard hasTurn || row.state != Outbox.Entry.State.sending.rawValue else {
                            throw Self.isNotThere(id)
                        }
                        return states.contains(Outbox.Entry.State(stored: row.state))
                    }
                    removal(of: entry, in: &update)
                    core.announceLater(try core.carryOut(update))
                    forget(entry)
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
            "Operation \(id) does not exist, is being sent, or was decided on; see `entries`."
        )
    }

    func reopen(_ id: OperationID, payload: [UInt8]?, newKey: Bool) throws(LarderError) {
        do {
            try locked { try withCurrentRows { try reopened(id, payload, newKey: newKey) } }
        } catch {
            throw LarderError(error)
        }
        signal.put(())
    }

    private func reopened(_ id: OperationID, _ payload: [UInt8]?, newKey: Bool) throws {
        guard let (old, operation) = rejected(id) else {
            throw LarderError(.invalidArgument, "There is no rejected operation \(id); see `entries`.")
        }
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
