import LarderSQLite
package import LarderTime

extension DiskStore {
    /// A write transaction: all of its changes are stored, or none. Valid within its closure.
    ///
    /// Entities, lists, tokens and the changes that they cover belong in one transaction.
    package struct WriteTransaction: ~Copyable {
        package let connection: DiskConnection
        /// The connection of the store that changes with this one.
        package let companion: DiskConnection?

        package init(connection: DiskConnection, companion: DiskConnection? = nil) {
            (self.connection, self.companion) = (connection, companion)
        }

        /// Reads the stored items, including the changes of this transaction.
        package func read<Result>(_ body: (borrowing ReadTransaction) throws -> Result) rethrows -> Result {
            let transaction = ReadTransaction(connection: connection)
            return try body(transaction)
        }

        // MARK: Entities

        /// Stores an entity, unless the stored one is newer, or of the same version and more complete.
        ///
        /// - Throws: `.tooLarge`, `.transform`, or the disk's error.
        @discardableResult
        package func put(_ entity: DiskEntity) throws(DiskError) -> DiskStore.PutOutcome {
            try connection.perform { try connection.put(entity) }
        }

        /// Renews an entity's times and stamp after a validation.
        ///
        /// - Parameters:
        ///   - key: the key of the entity.
        ///   - validatedAt: when the server has confirmed it.
        ///   - expiresAt: the end of its lifetime.
        ///   - terms: the server's terms for its use.
        ///   - isClockUncertain: whether the clock was set back since the request began.
        ///   - asked: when the request began; nil: after its last invalidation.
        ///   - entityTag: the confirmed validator. An entity with another one is not changed.
        /// - Returns: whether there was one to renew.
        @discardableResult
        package func touch(
            _ key: EntityKey,
            validatedAt: WallTime,
            expiresAt: WallTime,
            terms: DiskEntity.Terms = [],
            isClockUncertain: Bool = false,
            asked: Stamp? = nil,
            ifEntityTag entityTag: String? = nil
        ) throws(DiskError) -> Bool {
            try connection.perform {
                try connection.touch(
                    .entity,
                    key.type,
                    key.id,
                    validatedAt: validatedAt,
                    expiresAt: expiresAt,
                    flags: DiskFlags.of(terms, isClockUncertain: isClockUncertain),
                    asked: asked,
                    ifEntityTag: entityTag
                ) != nil
            }
        }

        /// Removes an entity. Lists still contain its key.
        package func remove(_ key: EntityKey) throws(DiskError) {
            try connection.perform { try connection.run(.remove, DiskKind.entity, key.type, key.id) }
        }

        /// Removes the value of an entity. A tombstone stays: what it keeps out stays out.
        package func removeValue(_ key: EntityKey) throws(DiskError) {
            try connection.perform { try connection.run(.removeValue, DiskKind.entity, key.type, key.id) }
        }

        /// Removes an entity that was deleted in a version, and leaves a tombstone: for as long as stale items are kept, nothing of
        /// that version or an older one is stored under the key.
        ///
        /// - Returns: false if the stored entity is newer than the deletion, and stays.
        @discardableResult
        package func remove(_ key: EntityKey, deletedInVersion version: Int64) throws(DiskError) -> Bool {
            try connection.perform { try connection.bury(key, version: version, at: .never) }
        }

        /// Removes an entity, and leaves a tombstone.
        ///
        /// - Parameters:
        ///   - version: the version in which it was deleted; nil: not known, and nothing with an earlier stamp is stored.
        /// - Returns: false if the stored entity is newer than the deletion, and stays.
        package func bury(_ key: EntityKey, version: Int64?, at stamp: Stamp) throws(DiskError) -> Bool {
            try connection.perform { try connection.bury(key, version: version, at: stamp) }
        }

        /// Removes all entities of a type, and their tombstones.
        package func removeEntities(ofType type: String) throws(DiskError) {
            try connection.perform { try connection.run(.removeSpace, DiskKind.entity, type) }
        }

        /// Marks an entity as stale until it has a later stamp.
        ///
        /// - Parameter stamp: nil: a later one than what has confirmed it.
        package func invalidate(_ key: EntityKey, at stamp: Stamp? = nil) throws(DiskError) {
            try connection.perform { try connection.run(.invalidate, DiskKind.entity, key.type, key.id, stamp) }
        }

        /// The largest stamp of an item; nil without items. Cost: reads all items.
        package func latestStamp() throws(DiskError) -> Stamp? {
            try connection.perform { try connection.latestStamp() }
        }

        /// Marks the times of all items as uncertain, because the clock was set back, until they are stored or touched again.
        package func markTimesUncertain() throws(DiskError) { try connection.perform { try connection.run(.distrust) } }

        // MARK: Lists

        /// Stores a list, replacing the one under its key. Only the members that differ are written.
        package func put(_ query: DiskQuery) throws(DiskError) { _ = try store(query) }

        /// Stores a list; returns it with the positions of its rows, by which the next call finds the difference without reading them.
        package func store(_ query: DiskQuery) throws(DiskError) -> DiskQuery {
            try connection.perform { try connection.put(query) }
        }

        /// Renews a list's times and stamp to those of the value.
        package func touch(_ query: inout DiskQuery) throws(DiskError) {
            let list = query
            let sums = try connection.perform {
                try connection.touch(
                    .query,
                    list.key.name,
                    list.key.canonicalParameters,
                    validatedAt: list.validatedAt,
                    expiresAt: list.expiresAt,
                    flags: DiskFlags.of(list.terms, isClockUncertain: list.isClockUncertain),
                    asked: list.asked,
                    ifEntityTag: nil
                )
            }
            guard let sums, let known = query.stored.rows, known.sum == sums.old else { return }
            query.stored = DiskQuery.KnownRows(DiskQuery.Rows(sum: sums.new, rows: known.rows))
        }

        /// Removes a list. Its entities stay.
        package func remove(_ key: QueryKey) throws(DiskError) {
            try connection.perform { try connection.run(.remove, DiskKind.query, key.name, key.canonicalParameters) }
        }

        /// Marks a list as stale until it has a later stamp.
        ///
        /// - Parameter stamp: nil: a later one than what has confirmed it.
        package func invalidate(_ key: QueryKey, at stamp: Stamp? = nil) throws(DiskError) {
            try connection.perform {
                try connection.run(.invalidate, DiskKind.query, key.name, key.canonicalParameters, stamp)
            }
        }

        // MARK: Records

        /// Stores a generic record, replacing the one under its key.
        package func put(_ record: DiskRecord) throws(DiskError) {
            try connection.perform { try connection.put(record) }
        }

        /// Removes a generic record.
        package func removeRecord(_ key: String) throws(DiskError) {
            try connection.perform { try connection.run(.remove, DiskKind.record, "", key) }
        }

        // MARK: Metadata and tokens

        /// Stores a metadata value; nil removes it. At most 1 MiB; never evicted.
        package func setMetadata(_ value: [UInt8]?, for key: String) throws(DiskError) {
            try connection.perform { try connection.setMetadata(.value, key, value) }
        }

        /// Stores a feed's change token; nil removes it.
        package func setToken(_ token: String?, for feed: String) throws(DiskError) {
            try connection.perform { try connection.setMetadata(.token, feed, token.map { Array($0.utf8) }) }
        }

        // MARK: Everything

        /// Removes all entities, lists and records. Metadata, tokens and the outbox stay.
        package func removeAllItems() throws(DiskError) {
            try connection.perform {
                for kind in [DiskKind.entity, .query, .record] {
                    try connection.run(.removeKind, kind)
                }
            }
        }

        // MARK: The outbox

        /// Appends an operation to the outbox; returns its sequence number.
        @discardableResult
        package func append(_ row: DiskOutboxRow) throws(DiskError) -> Int64 {
            try connection.perform {
                let reserve = DiskReserve(connection.context)
                guard try reserve.make() else { throw reserve.failure }
                try connection.store(row, .outboxAppend)
                return connection.database.lastInsertRowID
            }
        }

        /// Replaces the operation with the row's sequence number.
        package func update(_ row: DiskOutboxRow) throws(DiskError) {
            guard row.operation != DiskOutboxRow.unreadableName else {
                throw DiskError(
                    .transform,
                    "Operation \(row.sequence) cannot be decoded and is not changed. Open the store with the payload transform and "
                        + "key that it was written with, or drop the operation."
                )
            }
            try connection.perform { try connection.store(row, .outboxUpdate) }
        }

        /// Removes an operation from the outbox.
        package func removeOperation(_ sequence: Int64) throws(DiskError) {
            try connection.perform { try connection.run(.outboxRemove, sequence) }
        }
    }
}

extension DiskStore {
    /// The place of an item in the order of changes.
    package struct Place: Sendable {
        package var asked: Stamp
        package var invalid: Stamp
        package var version: Int64?
        /// Whether it is a deletion.
        package var isRemoval: Bool

        package init(asked: Stamp, invalid: Stamp = .never, version: Int64? = nil, isRemoval: Bool = false) {
            (self.asked, self.invalid, self.version, self.isRemoval) = (asked, invalid, version, isRemoval)
        }
    }
}
