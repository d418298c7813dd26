import LarderSQLite

extension DiskStore {
    /// A read transaction: a snapshot of all items. Valid within its closure.
    package struct ReadTransaction: ~Copyable {
        let connection: DiskConnection

        /// An entity, however stale; nil if there is none or it is damaged, which is reported and the entity removed.
        package func entity(_ key: EntityKey) throws(DiskError) -> DiskEntity? {
            try connection.perform { try connection.entity(key) }
        }

        /// A list of identifiers.
        package func query(_ key: QueryKey) throws(DiskError) -> DiskQuery? {
            try connection.perform { try connection.query(key) }
        }

        /// A list and its entities. Cost: two statements.
        package func list(_ key: QueryKey) throws(DiskError) -> DiskStore.List? {
            try connection.perform { try connection.list(key) }
        }

        /// The keys of all lists of a query, sorted.
        package func queryKeys(named name: String) throws(DiskError) -> [QueryKey] {
            try connection.perform { try connection.all(.queryKeys, name) { connection.queryKey($0) } }
        }

        /// The types of all entities, sorted. O(n) in all items.
        package func entityTypes() throws(DiskError) -> [String] {
            try connection.perform { try connection.all(.spaces, "0") { $0.text(0) } }
        }

        /// The names of all lists, sorted. O(n) in all items.
        package func queryNames() throws(DiskError) -> [String] {
            try connection.perform { try connection.all(.spaces, "1") { $0.text(0) } }
        }

        /// The identifiers of all entities of a type, sorted.
        package func entityIDs(ofType type: String) throws(DiskError) -> [String] {
            try connection.perform { try connection.all(.entityIDs, type) { $0.text(0) } }
        }

        /// The entities of a type whose values were stored after a stamp.
        ///
        /// - Parameter answered: the stamp of a commit that does not count.
        package func changes(
            ofType type: String,
            since stamp: Stamp,
            except answered: Stamp
        ) throws(DiskError) -> DiskStore.Changes {
            try connection.perform { try connection.changes(ofType: type, since: stamp, except: answered) }
        }

        /// The keys of all lists that contain an entity, sorted.
        package func queries(with key: EntityKey) throws(DiskError) -> [QueryKey] {
            try connection.perform { try connection.all(.queriesWith, key.type, key.id) { connection.queryKey($0) } }
        }

        /// The keys of all generic records with a prefix, sorted. O(n) in all records.
        package func recordKeys(startingWith prefix: String) throws(DiskError) -> [String] {
            try connection.perform { try connection.all(.recordKeys, prefix) { $0.text(0) } }
        }

        /// The keys of all entities, deletions and lists, or of the entities and deletions of a type.
        package func keys(ofType type: String? = nil) throws(DiskError) -> [DiskStore.Key] {
            try connection.perform { try connection.keys(ofType: type) }
        }

        /// The place of an entity or its deletion in the order of changes; nil if there is no row. Cost: less than reading it.
        package func place(of key: EntityKey) throws(DiskError) -> DiskStore.Place? {
            try connection.perform { try connection.place(.entity, key.type, key.id) }
        }

        /// The place of a list in the order of changes; nil if there is none.
        package func place(of key: QueryKey) throws(DiskError) -> DiskStore.Place? {
            try connection.perform { try connection.place(.query, key.name, key.canonicalParameters) }
        }

        /// A generic record, however outdated.
        package func record(_ key: String) throws(DiskError) -> DiskRecord? {
            try connection.perform { try connection.record(key) }
        }

        /// A metadata value.
        package func metadata(_ key: String) throws(DiskError) -> [UInt8]? {
            try connection.perform { try connection.metadata(.value, key) }
        }

        /// The change token of a feed.
        package func token(_ feed: String) throws(DiskError) -> String? {
            try connection.perform {
                try connection.metadata(.token, feed).map { String(decoding: $0, as: UTF8.self) }
            }
        }

        /// Operations of the outbox in order, after a sequence number.
        package func outbox(after sequence: Int64 = 0, limit: Int = 100) throws(DiskError) -> [DiskOutboxRow] {
            try connection.perform { try connection.outbox(after: sequence, limit: limit) }
        }
    }
}

extension DiskStore {
    /// The key of a row.
    package enum Key: Sendable {
        /// With the place of its deletion; nil: it has a value.
        case entity(EntityKey, deletion: DiskStore.Place?)
        case query(QueryKey)
    }

    /// The entities of a type that have changed since a time.
    package struct Changes: Sendable {
        /// Their identifiers, sorted.
        package var ids: [String]
        /// Whether others have changed that are no longer stored.
        package var areLost: Bool
    }
}
