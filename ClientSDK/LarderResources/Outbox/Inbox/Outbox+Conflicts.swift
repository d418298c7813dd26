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
    /// A rejected edit with the three versions of the entity, as all processes have left them. Each of them survives a restart.
    ///
    /// Read on the calling thread: some 10 µs if the entity is not in memory.
    ///
    /// - Returns: nil if the operation is not rejected, is no edit of such an entity (a creation, a removal, an operation without
    ///   `WriteBehind.conflicts`), or if the entity is not stored any more.
    /// - Throws: `.encoding` if another version of the application has stored the operation; `.storage`, `.closed`.
    public func conflict<Value: CacheEntity>(
        _ id: OperationID,
        of type: Value.Type = Value.self
    ) throws(LarderError) -> EditConflict<Value>? {
        guard let entry = try readRejected(id) else { return nil }
        return try conflict(entry, of: type)
    }

    private func conflict<Value: CacheEntity>(
        _ entry: Outbox.Entry,
        of type: Value.Type
    ) throws(LarderError) -> EditConflict<Value>? {
        do {
            guard let operation = state.withLock({ $0.queue.operation(entry.operation) }),
                let base = try operation.conflicts?.base(entry.payload) as? Value
            else { return nil }
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
        } catch {
            throw LarderError(.encoding, "Operation \(entry.id) cannot be read: \(error)", cause: error)
        }
    }

    private func rule(of entry: Outbox.Entry) -> ConflictRule<[UInt8]>? {
        state.withLock { $0.queue.operation(entry.operation) }?.conflicts
    }

    /// Sends the fields of a rejected edit again, over what the server has changed meanwhile, and with its ETag if the edit had one. An
    /// operation that is no edit of an entity is sent as it is, with a new idempotency key.
    ///
    /// - Throws: as `retry`; `.encoding`.
    public func keepMine(_ id: OperationID) throws(LarderError) { try settle(id, keepsMine: true) }

    /// Removes a rejected operation, and asks for the entities that it would have changed.
    ///
    /// - Throws: as `retry`; `.storage`.
    public func takeTheirs(_ id: OperationID) throws(LarderError) {
        let entry = try rejected(id)
        var update = CacheUpdate()
        update.steps = shown(by: entry)?.invalidations ?? []
        // First: whatever becomes of this process in between, the entities are asked for.
        try core.commit(update)
        try drop(entry)
    }

    /// Sends those fields of a rejected edit again that the server has not changed meanwhile.
    ///
    /// - Throws: as `retry`; `.conflict` if both have changed a field, which the description names, and then nothing has changed;
    ///   `.invalidArgument` if the operation is no edit of an entity that is stored; `.encoding`.
    public func merge(_ id: OperationID) throws(LarderError) { try settle(id, keepsMine: false) }

    /// Sends a rejected edit again so that the server has this value afterwards.
    ///
    /// - Throws: as `merge`, without `.conflict`.
    public func edit<Value: CacheEntity>(_ id: OperationID, toValue value: Value) throws(LarderError) {
        let entry = try rejected(id)
        guard let rule = rule(of: entry), let conflict = try conflict(entry, of: Value.self) else {
            throw LarderError(.invalidArgument, "Operation \(id) is no rejected edit of a stored \(Value.entityType).")
        }
        try send(value, instead: conflict, of: entry, rule)
    }

    private func settle(_ id: OperationID, keepsMine: Bool) throws(LarderError) {
        let entry = try rejected(id)
        let rule = rule(of: entry)
        let base: (any CacheEntity)?
        do { base = try rule?.base(entry.payload) } catch { throw LarderError(error) }
        if let rule, let base, try settle(entry, base, rule, keepsMine: keepsMine) { return }
        // The server has no value that it could be applied to, as far as this device knows.
        guard keepsMine else {
            let text =
                "Operation \(id) is no edit of an entity that is stored, so it cannot be merged. Use retry, edit or drop."
            throw LarderError(.invalidArgument, text)
        }
        try reopen(entry, newKey: true)
    }

    /// - Returns: whether the entity is stored; otherwise nothing has changed.
    private func settle<Value: CacheEntity>(
        _ entry: Outbox.Entry,
        _ base: Value,
        _ rule: ConflictRule<[UInt8]>,
        keepsMine: Bool
    ) throws(LarderError) -> Bool {
        guard let conflict = try conflict(entry, of: Value.self) else { return false }
        let merge = try conflict.merged(preferringMine: keepsMine)
        guard keepsMine || merge.conflicts.isEmpty else {
            let names = merge.conflicts.sorted().joined(separator: ", ")
            let text = "Both have changed \(names) of \(base.entityKey). Decide with keepMine, takeTheirs or edit."
            throw LarderError(.conflict, text, operation: entry.id)
        }
        try send(merge.value, instead: conflict, of: entry, rule)
        return true
    }

    private func send<Value: CacheEntity>(
        _ value: Value,
        instead conflict: EditConflict<Value>,
        of entry: Outbox.Entry,
        _ rule: ConflictRule<[UInt8]>
    ) throws(LarderError) {
        let payload: [UInt8]?
        do { payload = try rule.resolve(entry.payload, value, conflict.theirs, conflict.validator) } catch {
            throw LarderError(error)
        }
        guard let payload else { return try drop(entry) }
        try reopen(entry, payload: payload, newKey: true)
    }
}
