public import LarderTime

/// One thing at a time.
extension DiskStore {
    /// An entity, however stale; nil where there is none, or a damaged one, which is reported and removed.
    public func entity(_ key: EntityKey) throws(DiskError) -> DiskEntity? { try readOnce { try $0.entity(key) } }

    /// An entity with its value. One that does not decode any more is a miss: it is reported and removed.
    ///
    /// - Parameter decode: throws where the payload is not what it should be, as when another version of the application wrote it.
    public func entity<Value>(
        _ key: EntityKey,
        decodedBy decode: (DiskEntity) throws -> Value
    ) throws(DiskError) -> (entity: DiskEntity, value: Value)? {
        guard let entity = try entity(key) else { return nil }
        do {
            return (entity, try decode(entity))
        } catch {
            try discard(.entity(key), because: error, .entity, key.type, key.id) { try $0.entity(key) == entity }
            return nil
        }
    }

    /// A list and its entities.
    public func list(_ key: QueryKey) throws(DiskError) -> DiskList? {
        do {
            return try read { transaction in try transaction.list(key) }
        } catch {
            throw DiskError(error)
        }
    }

    /// A list of identifiers.
    public func query(_ key: QueryKey) throws(DiskError) -> DiskQuery? {
        do {
            return try read { transaction in try transaction.query(key) }
        } catch {
            throw DiskError(error)
        }
    }

    /// A generic record, however outdated.
    public func record(_ key: String) throws(DiskError) -> DiskRecord? { try readOnce { try $0.record(key) } }

    /// A generic record with its value. One that does not decode any more is a miss: it is reported and removed.
    public func record<Value>(
        _ key: String,
        decodedBy decode: (DiskRecord) throws -> Value
    ) throws(DiskError) -> (record: DiskRecord, value: Value)? {
        guard let record = try record(key) else { return nil }
        do {
            return (record, try decode(record))
        } catch {
            try discard(.record(key), because: error, .record, "", key) { try $0.record(key) == record }
            return nil
        }
    }

    /// A value under a key of the caller's.
    public func metadata(_ key: String) throws(DiskError) -> [UInt8]? {
        try readOnce { try $0.metadata(.value, key) }
    }

    /// The change token of a feed.
    public func token(_ feed: String) throws(DiskError) -> String? {
        try readOnce { try $0.metadata(.token, feed) }.map { String(decoding: $0, as: UTF8.self) }
    }

    /// Stores an entity, unless what is stored is newer, or of the same version and more complete.
    @discardableResult
    public func put(_ entity: DiskEntity) throws(DiskError) -> DiskPutOutcome {
        try writeOnce { transaction throws(DiskError) in try transaction.put(entity) }
    }

    /// Stores a generic record in place of what is stored under its key.
    public func put(_ record: DiskRecord) throws(DiskError) {
        try writeOnce { transaction throws(DiskError) in try transaction.put(record) }
    }

    /// Renews an entity's times after a 304 or its like, and nothing else. Whether there was something to renew.
    @discardableResult
    public func touch(
        _ key: EntityKey,
        validatedAt: WallTime,
        expiresAt: WallTime,
        ifEntityTag entityTag: String? = nil
    ) throws(DiskError) -> Bool {
        try writeOnce { transaction throws(DiskError) in
            try transaction.touch(key, validatedAt: validatedAt, expiresAt: expiresAt, ifEntityTag: entityTag)
        }
    }

    /// Removes an entity. Lists go on naming it.
    public func remove(_ key: EntityKey) throws(DiskError) {
        try writeOnce { transaction throws(DiskError) in try transaction.remove(key) }
    }

    /// Removes a generic record.
    public func removeRecord(_ key: String) throws(DiskError) {
        try writeOnce { transaction throws(DiskError) in try transaction.removeRecord(key) }
    }

    /// Removes all entities, lists and records. Metadata, tokens and the outbox stay.
    public func removeAllItems() throws(DiskError) {
        try writeOnce { transaction throws(DiskError) in try transaction.removeAllItems() }
    }

    private func writeOnce<Result: Sendable>(
        _ body: (borrowing WriteTransaction) throws(DiskError) -> Result
    ) throws(DiskError) -> Result {
        do {
            return try write { transaction in try body(transaction) }
        } catch {
            throw DiskError(error)
        }
    }

    /// Notes a row for removal, if it still holds what did not decode.
    private func discard(
        _ item: DiskEvent.Item,
        because reason: any Error,
        _ kind: DiskKind,
        _ space: String,
        _ key: String,
        where isSame: (DiskConnection) throws -> Bool
    ) throws(DiskError) {
        do {
            try read { transaction in
                let connection = transaction.connection
                try connection.perform {
                    guard try isSame(connection), let sum = try connection.sum(kind, space, key) else { return }
                    let damage = DiskContext.Damage(sum: sum.sum, item: item, reason: .undecodable("\(reason)"))
                    connection.context.noteDamage(sum.row, damage)
                }
            }
        } catch {
            throw DiskError(error)
        }
    }
}
