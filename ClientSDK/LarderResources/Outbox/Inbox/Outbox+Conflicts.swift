import LarderStorage
import Synchronization

/// Decisions about rejected edits of entities. `rejected` lists the operations; `retry`, `edit` and `drop` are for all of them.
///
/// ```swift
/// for entry in client.cache.outbox.rejected {
///     guard let conflict = try client.cache.outbox.conflict(entry.id, of: Article.self) else { continue }
///     print(entry.rejection?.title ?? "", try conflict.myFields, try conflict.theirFields)
///     do { try client.cache.outbox.merge(entry.id) } catch where error.code == .conflict {
///         try client.cache.outbox.keepMine(entry.id)           // or takeTheirs, or edit(_:toValue:)
///     }
/// }
/// ```
extension Outbox {
    /// A rejected edit with the three versions of the entity. Each of them survives a restart.
    ///
    /// Read on the calling thread: some 10 µs if the entity is not in memory.
    ///
    /// - Returns: nil if the operation is not rejected, is no edit of such an entity (a creation, a removal, an operation without
    ///   `WriteBehind.conflicts`), or if the entity is not stored any more.
    /// - Throws: `.encoding` if another version of the application has stored the operation.
    public func conflict<Value: CacheEntity>(
        _ id: OperationID,
        of type: Value.Type = Value.self
    ) throws(LarderError) -> EditConflict<Value>? {
        guard let (entry, operation) = rejected(id), let rule = operation.conflicts else { return nil }
        do {
            guard let base = try rule.base(entry.payload) as? Value else { return nil }
            return try conflict(entry, operation, base)
        } catch {
            throw LarderError(.encoding, "Operation \(id) cannot be read: \(error)", cause: error)
        }
    }

    private func conflict<Value: CacheEntity>(
        _ entry: Outbox.Entry,
        _ operation: OutboxOperation,
        _ base: Value
    ) throws -> EditConflict<Value>? {
        let changes = try operation.changes(entry.payload, entry.idempotencyKey)
        guard let key = changes.entityKeys.first(where: { $0.type == Value.entityType }) else { return nil }
        let edited = changes.overlays.filter { $0.key == .entity(key) }
            .reduce(base as (any Sendable)?) { $1.change.applied(to: $0) }
        guard let mine = edited as? Value, let stored = core.entity(key, { try Value.codec.decode($0) })?.stored,
            let theirs = stored.value as? Value
        else { return nil }
        return EditConflict(
            base: base,
            mine: mine,
            theirs: theirs,
            validator: stored.validator,
            operation: entry.id
        )
    }

    /// A rejected operation whose name is registered.
    func rejected(_ id: OperationID) -> (Outbox.Entry, OutboxOperation)? {
        state.withLock { state in
            guard let entry = state.queue[id.rawValue], entry.state == .rejected else { return nil }
            return state.queue.operation(entry.operation).map { (entry, $0) }
        }
    }

    /// Sends the fields of a rejected edit again, over what the server has changed meanwhile, and with its ETag if the edit had one. An
    /// operation that is no edit of an entity is sent as it is, with a new idempotency key.
    ///
    /// - Throws: as `retry`; `.encoding`.
    public func keepMine(_ id: OperationID) throws(LarderError) {
        guard let base = try base(of: id) else { return try reopen(id, payload: nil, newKey: true) }
        try settle(id, base, keepsMine: true)
    }

    /// Removes a rejected operation, and asks for the entities that it would have changed.
    ///
    /// - Throws: as `retry`; `.storage`.
    public func takeTheirs(_ id: OperationID) throws(LarderError) {
        var update = CacheUpdate()
        update.steps = rejected(id).flatMap { shown(by: $0.0) }?.invalidations ?? []
        // First: whatever becomes of this process in between, the entities are asked for.
        try core.commit(update)
        try remove(id, from: [.rejected])
    }

    /// Sends those fields of a rejected edit again that the server has not changed meanwhile.
    ///
    /// - Throws: as `retry`; `.conflict` if both have changed a field, which the description names, and then nothing has changed;
    ///   `.invalidArgument` if the operation is no edit of an entity that is stored; `.encoding`.
    public func merge(_ id: OperationID) throws(LarderError) {
        guard let base = try base(of: id) else {
            throw LarderError(
                .invalidArgument,
                "Operation \(id) is no edit that can be merged. Use retry, edit or drop."
            )
        }
        try settle(id, base, keepsMine: false)
    }

    /// Sends a rejected edit again so that the server has this value afterwards.
    ///
    /// - Throws: as `merge`, without `.conflict`.
    public func edit<Value: CacheEntity>(_ id: OperationID, toValue value: Value) throws(LarderError) {
        guard let conflict = try conflict(id, of: Value.self) else {
            throw LarderError(.invalidArgument, "Operation \(id) is no rejected edit of a stored \(Value.entityType).")
        }
        try send(value, instead: conflict)
    }

    private func base(of id: OperationID) throws(LarderError) -> (any CacheEntity)? {
        guard let (entry, operation) = rejected(id) else { return nil }
        do { return try operation.conflicts?.base(entry.payload) } catch { throw LarderError(error) }
    }

    private func settle<Value: CacheEntity>(
        _ id: OperationID,
        _ base: Value,
        keepsMine: Bool
    ) throws(LarderError) {
        guard let conflict = try conflict(id, of: Value.self) else {
            // The server has no value that the edit could be applied to, as far as this device knows.
            guard keepsMine else {
                throw LarderError(
                    .invalidArgument,
                    "Operation \(id) cannot be merged: \(base.entityKey) is not stored."
                )
            }
            return try reopen(id, payload: nil, newKey: true)
        }
        let merge = try conflict.merged(preferringMine: keepsMine)
        guard keepsMine || merge.conflicts.isEmpty else {
            let names = merge.conflicts.sorted().joined(separator: ", ")
            let text = "Both have changed \(names) of \(base.entityKey). Decide with keepMine, takeTheirs or edit."
            throw LarderError(.conflict, text, operation: id)
        }
        try send(merge.value, instead: conflict)
    }

    private func send<Value: CacheEntity>(
        _ value: Value,
        instead conflict: EditConflict<Value>
    ) throws(LarderError) {
        guard let id = conflict.operation, let (entry, operation) = rejected(id), let rule = operation.conflicts else {
            throw LarderError(.invalidArgument, "The operation was decided on meanwhile; see `entries`.")
        }
        let payload: [UInt8]?
        do { payload = try rule.resolve(entry.payload, value, conflict.theirs, conflict.validator) } catch {
            throw LarderError(error)
        }
        guard let payload else { return try drop(id) }
        try reopen(id, payload: payload, newKey: true)
    }
}
