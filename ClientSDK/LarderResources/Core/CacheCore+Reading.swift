import LarderMemory
import LarderStorage
import Synchronization

/// Stored values, from memory or else from the disk.
extension CacheCore {
    /// The server value of an entity, and whether it was read from the disk.
    func entity(_ key: EntityKey, _ decode: StoredEntityDecoder) -> (stored: StoredEntity, isFromDisk: Bool)? {
        if let stored = entities[key] { return (stored, false) }
        guard let disk = contentDisk else { return nil }
        let seenCommits = seenCommits
        let count = memory.withLock { $0 }
        do {
            guard let row = try disk.entity(key) else { return nil }
            let stored = try adopt(row, decode, seenCommits: seenCommits, ifNothingSince: count)
            reportEvictions()
            return (stored, true)
        } catch {
            configuration.onEvent(.storageFailed(LarderError(error)))
            return nil
        }
    }

    /// Decodes a row, and stores it in memory, unless there was a commit meanwhile.
    func adopt(
        _ row: DiskEntity,
        _ decode: StoredEntityDecoder,
        seenCommits: UInt64,
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
        let stored = StoredEntity(
            row,
            value: value,
            epoch: now().epoch,
            areTimesUncertain: areTimesUncertain,
            seenCommits: seenCommits
        )
        fill(stored, row.key, ifNothingSince: count)
        return stored
    }

    /// A query index, with its entities if it was read from the disk.
    func query(_ key: QueryKey) -> (stored: StoredQuery, rows: [EntityKey: DiskEntity]?)? {
        if let stored = knownQuery(key) { return (stored, nil) }
        guard let disk = contentDisk else { return nil }
        let seenCommits = seenCommits
        let count = memory.withLock { $0 }
        do {
            guard let list = try disk.list(key) else { return nil }
            let stored = StoredQuery(
                list.query,
                epoch: now().epoch,
                areTimesUncertain: areTimesUncertain,
                seenCommits: seenCommits
            )
            memory.withLock { present in
                if present == count { queries.store(stored, for: key, cost: stored.cost) }
            }
            var rows: [EntityKey: DiskEntity] = [:]
            for case let row? in list.entities { rows[row.key] = row }
            reportEvictions()
            return (stored, rows)
        } catch {
            configuration.onEvent(.storageFailed(LarderError(error)))
            return nil
        }
    }

    /// A query index in memory, unless another process has changed the disk since.
    func knownQuery(_ key: QueryKey) -> StoredQuery? {
        guard let stored = queries[key] else { return nil }
        return stored.seenCommits >= seenCommits ? stored : nil
    }

    /// Stores a row in memory, unless there was a commit meanwhile.
    func fill(_ stored: StoredEntity, _ key: EntityKey, ifNothingSince count: UInt64) {
        memory.withLock { present in
            if present == count { entities.store(stored, for: key) }
        }
    }

    /// The number of commits. Content that is assembled between two equal counts is consistent.
    var commitCount: UInt64 { memory.withLock { $0 } }
}
