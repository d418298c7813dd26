import LarderMemory
import LarderStorage
import Synchronization

/// Stored values, from memory or else from the disk.
extension CacheCore {
    /// Reads or writes a store where a failure stops nothing: it is reported. Called without a lock.
    @discardableResult func reporting<Result>(_ body: () throws -> Result) -> Result? {
        do { return try body() } catch {
            configuration.onEvent(.storageFailed(LarderError(error)))
            return nil
        }
    }

    /// The server value of an entity, and whether it was read from the disk.
    func entity(_ key: EntityKey, _ decode: StoredEntityDecoder) -> (stored: StoredEntity, isFromDisk: Bool)? {
        if let stored = entities[key] { return (stored, false) }
        let count = memory.withLock { $0 }
        return reporting {
            guard let (row, isInMemory) = try row(of: key) else { return nil }
            let stored = try adopt(row, decode, ifNothingSince: count)
            reportEvictions()
            return (stored, !isInMemory)
        } ?? nil
    }

    /// The row of an entity, and whether it is in memory. What is in memory, or was removed there, counts (`Rows`).
    private func row(of key: EntityKey) throws -> (row: DiskEntity, isInMemory: Bool)? {
        if let store = memoryRows.used(for: .entity(key)) {
            let (isThere, row) = try store.read { (try $0.place(of: .entity(key)) != nil, try $0.entity(key)) }
            if isThere { return row.map { ($0, true) } }
        }
        return isHidden(.entity(key)) ? nil : try contentDisk?.entity(key).map { ($0, false) }
    }

    /// Whether what the disk has under a key may not count.
    private func isElsewhere(_ key: StoredKey) -> Bool { memoryRows.mayHave(key) || isHidden(key) }

    /// Decodes a row, and stores it in memory, unless there was a commit meanwhile.
    func adopt(
        _ row: DiskEntity,
        _ decode: StoredEntityDecoder,
        ifNothingSince count: UInt64
    ) throws(LarderError) -> StoredEntity {
        let value: any Sendable
        do { value = try decode(row.payload) } catch {
            // The row stays: it may have another type, or be from a newer version of the application.
            throw LarderError(
                .storage,
                "The row under \"\(row.key)\" cannot be decoded as the requested type: \(error). It stays as it is. Read it "
                    + "as the type that it was stored as, or fetch it again.",
                cause: error
            )
        }
        let stored = StoredEntity(row, value: value)
        fill(stored, row.key, ifNothingSince: count)
        return stored
    }

    /// A query index, with its entities if it was read from the disk.
    func query(_ key: QueryKey) -> (stored: StoredQuery, rows: [EntityKey: DiskEntity]?)? {
        if let stored = queries[key] { return (stored, nil) }
        let count = memory.withLock { $0 }
        return reporting {
            let kept = try memoryRows.used(for: .query(key))?.query(key)
            let onDisk = kept != nil || isHidden(.query(key)) ? nil : try contentDisk?.list(key)
            guard let query = kept ?? onDisk?.query else { return nil }
            let stored = StoredQuery(query)
            memory.withLock { present in
                if present == count { queries.store(stored, for: key, cost: stored.cost) }
            }
            reportEvictions()
            guard let onDisk else { return (stored, nil) }
            var rows: [EntityKey: DiskEntity] = [:]
            for case let row? in onDisk.entities where !isElsewhere(.entity(row.key)) { rows[row.key] = row }
            return (stored, rows)
        } ?? nil
    }

    /// Stores a row in memory, unless there was a commit meanwhile.
    func fill(_ stored: StoredEntity, _ key: EntityKey, ifNothingSince count: UInt64) {
        memory.withLock { present in
            if present == count { keep(stored, key) }
        }
    }

    /// The number of commits. Content that is assembled between two equal counts is consistent.
    var commitCount: UInt64 { memory.withLock { $0 } }

    /// The entities of a type that may be in another place of a declared list than its index says.
    func changes(since list: DiskQuery, ofType type: String) -> ListChanges {
        var keys: Set<EntityKey> = []
        var areLost = false
        let areRead: Void? = reporting {
            for store in [memoryRows.used, contentDisk].compactMap(\.self) {
                let found = try store.read { try $0.changes(ofType: type, since: list.asked, except: list.answered) }
                keys.formUnion(found.ids.map { EntityKey(type: type, id: $0) })
                areLost = areLost || found.areLost
            }
        }
        return ListChanges(
            recorded: keys,
            pending: Set(overlays.pending { $0.type == type }.keys),
            // The list is stale until they can be read.
            areLost: areLost || areRead == nil,
            part: ListChanges.part(ofType: type)
        )
    }

    /// What a request for a list or a page gets of its stored items.
    ///
    /// - Parameters:
    ///   - count: the number of stored items.
    ///   - age: how long ago they were confirmed; nil: unknown.
    ///   - isWholeList: whether they are the whole list.
    func storedItems(_ count: Int, age: Duration?, isWholeList: Bool = false) -> StoredItems {
        let values = { @Sendable [self] (items: [StoredItems.Version], decode: @escaping StoredItems.Decoder) in
            await reading {
                var values: [String: any Sendable] = [:]
                for item in items {
                    guard let stored = self.entity(item.key, decode)?.stored, let version = stored.version,
                        version >= item.version, !stored.isInvalidated, stored.completeness == .complete,
                        self.invalidations.latest([], type: item.key.type) <= stored.asked
                    else { continue }
                    values[item.key.id] = stored.value
                }
                return values
            }
        }
        return StoredItems(values: values, count: count, age: age, isWholeList: isWholeList)
    }
}
