import LarderTime

/// Reads and writes of single items.
extension DiskStore {
    /// An entity, however stale; nil if there is none or it is damaged, which is reported and the entity removed.
    package func entity(_ key: EntityKey) throws(DiskError) -> DiskEntity? { try readOnce { try $0.entity(key) } }

    /// A list and its entities.
    package func list(_ key: QueryKey) throws(DiskError) -> List? {
        try readOnce { connection in try connection.snapshot { try connection.list(key) } }
    }

    /// A list of identifiers.
    package func query(_ key: QueryKey) throws(DiskError) -> DiskQuery? {
        try readOnce { connection in try connection.snapshot { try connection.query(key) } }
    }

    package func metadata(_ key: String) throws(DiskError) -> [UInt8]? {
        try readOnce { try $0.metadata(key) }
    }

    /// Whether there is a metadata value that cannot be read, and that may not be taken for none.
    package func isUnreadable(_ key: String) throws(DiskError) -> Bool {
        try readOnce { try $0.isUnreadable(key) }
    }

    /// The change token of a feed.
    package func token(_ feed: String) throws(DiskError) -> String? {
        try readOnce { try $0.token(feed) }
    }

    /// Removes all entities and lists. Metadata, tokens and the outbox stay.
    package func removeAllItems() throws(DiskError) { try writeOnce { try $0.removeAllItems() } }

    func writeOnce(_ body: (DiskConnection) throws -> Void) throws(DiskError) {
        do { try write { try body($0) } } catch { throw DiskError(error) }
    }
}
