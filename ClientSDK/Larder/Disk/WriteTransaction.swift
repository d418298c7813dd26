import LarderSQLite
public import LarderTime

extension DiskStore {
    /// Changes that happen together or not at all. Valid within the closure that it is given to.
    ///
    /// Entities, lists, tokens and the changes that they cover belong in one transaction.
    public struct WriteTransaction: ~Copyable {
        let connection: DiskConnection

        /// Reads what is stored, with the changes of this transaction.
        public func read<Result>(_ body: (borrowing ReadTransaction) throws -> Result) rethrows -> Result {
            let transaction = ReadTransaction(connection: connection)
            return try body(transaction)
        }

        // MARK: Entities

        /// Stores an entity, unless what is stored is newer, or of the same version and more complete.
        ///
        /// - Throws: `.tooLarge` for what cannot fit, `.transform`, or what the disk did.
        @discardableResult
        public func put(_ entity: DiskEntity) throws(DiskError) -> DiskPutOutcome {
            try connection.perform { try connection.put(entity) }
        }

        /// Renews an entity's times after a 304 or its like, and nothing else.
        ///
        /// - Parameter entityTag: the validator that the server confirmed. What is stored under another one stays as it is.
        /// - Returns: whether there was something to renew.
        @discardableResult
        public func touch(
            _ key: EntityKey,
            validatedAt: WallTime,
            expiresAt: WallTime,
            ifEntityTag entityTag: String? = nil
        ) throws(DiskError) -> Bool {
            try connection.perform {
                try connection.touch(
                    .entity,
                    key.type,
                    key.id,
                    validatedAt: validatedAt,
                    expiresAt: expiresAt,
                    ifEntityTag: entityTag
                )
            }
        }

        /// Removes an entity. Lists go on naming it.
        public func remove(_ key: EntityKey) throws(DiskError) {
            try connection.perform { try connection.run(.remove, .entity, key.type, key.id) }
        }

        /// Removes an entity that was deleted in a version, and leaves a tombstone: nothing of that version or an older one is
        /// stored under the key for as long as stale things are kept.
        ///
        /// - Returns: false where what is stored is newer than the deletion, and stays.
        @discardableResult
        public func remove(_ key: EntityKey, deletedInVersion version: Int64) throws(DiskError) -> Bool {
            try connection.perform { try connection.bury(key, version: version) }
        }

        /// Removes all entities of a type, and their tombstones.
        public func removeEntities(ofType type: String) throws(DiskError) {
            try connection.perform { try connection.run(.removeSpace, kind: .entity, space: type) }
        }

        /// Declares an entity stale, until it is stored or touched again.
        public func invalidate(_ key: EntityKey) throws(DiskError) {
            try connection.perform { try connection.run(.invalidate, .entity, key.type, key.id) }
        }

        /// Declares all entities of a type stale.
        public func invalidateEntities(ofType type: String) throws(DiskError) {
            try connection.perform { try connection.run(.invalidateSpace, kind: .entity, space: type) }
        }

        /// Keeps an entity from being evicted or outdated, for as long as something is pending that needs it. Storing it again
        /// changes nothing of that; removing it does.
        public func setPinned(_ isPinned: Bool, _ key: EntityKey) throws(DiskError) {
            try connection.perform { try connection.run(.pin, [key.type, key.id], numbers: [isPinned ? 1 : 0]) }
        }

        /// Says of everything stored that its times were taken before the clock was set back, until it is stored or touched again.
        public func distrustTimes() throws(DiskError) { try connection.perform { try connection.run(.distrust) } }

        // MARK: Lists

        /// Stores a list in place of what is stored under its key.
        public func put(_ query: DiskQuery) throws(DiskError) { try connection.perform { try connection.put(query) } }

        /// Renews a list's times, and nothing else.
        @discardableResult
        public func touch(
            _ key: QueryKey,
            validatedAt: WallTime,
            expiresAt: WallTime,
            ifEntityTag entityTag: String? = nil
        ) throws(DiskError) -> Bool {
            try connection.perform {
                try connection.touch(
                    .query,
                    key.name,
                    key.canonicalParameters,
                    validatedAt: validatedAt,
                    expiresAt: expiresAt,
                    ifEntityTag: entityTag
                )
            }
        }

        /// Removes a list. The entities that it names stay.
        public func remove(_ key: QueryKey) throws(DiskError) {
            try connection.perform { try connection.run(.remove, .query, key.name, key.canonicalParameters) }
        }

        /// Declares a list stale, until it is stored or touched again.
        public func invalidate(_ key: QueryKey) throws(DiskError) {
            try connection.perform { try connection.run(.invalidate, .query, key.name, key.canonicalParameters) }
        }

        /// Declares those lists of a query stale whose key is chosen.
        ///
        /// - Returns: how many. Cost: it looks at the keys of all lists of that name.
        @discardableResult
        public func invalidateQueries(
            named name: String,
            where isChosen: (QueryKey) -> Bool = { _ in true }
        ) throws(DiskError) -> Int {
            let chosen = try connection.perform { try connection.queryKeys(named: name) }.filter(isChosen)
            for key in chosen { try invalidate(key) }
            return chosen.count
        }

        // MARK: Records

        /// Stores a generic record in place of what is stored under its key.
        public func put(_ record: DiskRecord) throws(DiskError) {
            try connection.perform { try connection.put(record) }
        }

        /// Removes a generic record.
        public func removeRecord(_ key: String) throws(DiskError) {
            try connection.perform { try connection.run(.remove, .record, "", key) }
        }

        // MARK: Metadata and tokens

        /// Keeps a value under a key of the caller's; nil removes it. At most 1 MiB; it is never evicted.
        public func setMetadata(_ value: [UInt8]?, for key: String) throws(DiskError) {
            try connection.perform {
                try connection.setMetadata(.value, key, value)
                if let number = DiskOutboxRow.sequence(ofNote: key) {
                    connection.outboxChanges.append(.noted(number, value))
                }
            }
        }

        /// Keeps a feed's change token; nil removes it.
        public func setToken(_ token: String?, for feed: String) throws(DiskError) {
            try connection.perform { try connection.setMetadata(.token, feed, token.map { Array($0.utf8) }) }
        }

        // MARK: Everything

        /// Removes all entities, lists and records. Metadata, tokens and the outbox stay.
        public func removeAllItems() throws(DiskError) {
            try connection.perform {
                for kind in [DiskKind.entity, .query, .record] {
                    try connection.run(.removeKind, [], numbers: [kind.rawValue])
                }
            }
        }

        // MARK: The outbox

        /// Adds an operation at the end of the outbox; its sequence number.
        @discardableResult
        package func append(_ row: DiskOutboxRow) throws(DiskError) -> Int64 {
            try connection.perform {
                let reserve = DiskReserve(connection.context)
                guard try reserve.make() else { throw reserve.failure }
                try connection.store(row, .outboxAppend)
                var stored = row
                stored.sequence = connection.database.lastInsertRowID
                connection.outboxChanges.append(.stored(stored))
                return stored.sequence
            }
        }

        /// Replaces the operation with the row's sequence number.
        package func update(_ row: DiskOutboxRow) throws(DiskError) {
            try connection.perform {
                try connection.store(row, .outboxUpdate)
                if connection.database.changes > 0 { connection.outboxChanges.append(.stored(row)) }
            }
        }

        /// Removes an operation from the outbox.
        package func removeOperation(_ sequence: Int64) throws(DiskError) {
            try connection.perform {
                try connection.run(.outboxRemove, [], numbers: [sequence])
                connection.outboxChanges.append(.removed(sequence))
            }
        }
    }
}
