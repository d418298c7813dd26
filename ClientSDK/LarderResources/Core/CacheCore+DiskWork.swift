import LarderEvents
import LarderMemory
import LarderStorage

/// Where asynchronous functions wait for the disk: on the threads of two executors, so that a read never queues behind a commit. Without
/// a disk they run where the runtime decides.
///
/// Only the part of a function that may touch the disk runs there, never a source or an operation of the app.
extension CacheCore {
    /// Runs a part that reads the disk.
    package nonisolated(nonsending) func reading<Result: Sendable, Failure: Error>(
        _ body: @Sendable () async throws(Failure) -> Result
    ) async throws(Failure) -> Result {
        try await withTaskExecutorPreference(reads, operation: body)
    }

    /// Runs a part that changes the disk.
    package nonisolated(nonsending) func changing<Result: Sendable, Failure: Error>(
        _ body: @Sendable () async throws(Failure) -> Result
    ) async throws(Failure) -> Result {
        try await withTaskExecutorPreference(changes, operation: body)
    }

    /// The keys of all values, lists and entities whose name or type begins with a prefix.
    func keys(startingWith prefix: String) throws(LarderError) -> Set<StoredKey> {
        func isMeant(_ name: String) -> Bool { name.utf8.starts(with: prefix.utf8) }
        // Those in memory, too: their rows may have been evicted.
        var keys = Set(queries.keys).union(nodes.all.map(\.key)).filter { isMeant($0.name) }
        var entities = Set(self.entities.keys).union(nodes.all.compactMap(\.storedKey.entity)).filter {
            isMeant($0.type)
        }
        do {
            for store in [memoryRows.used, contentDisk].compactMap(\.self) {
                try store.read { transaction in
                    for name in try transaction.queryNames() where isMeant(name) {
                        keys.formUnion(try transaction.queryKeys(named: name))
                    }
                    for type in try transaction.entityTypes() {
                        let name = type.utf8.first == EntityKey.wholeValuePrefix ? String(type.dropFirst()) : type
                        guard isMeant(name) else { continue }
                        let ids = try transaction.entityIDs(ofType: type)
                        if name == type {
                            entities.formUnion(ids.map { EntityKey(type: type, id: $0) })
                        } else {
                            keys.formUnion(ids.compactMap { QueryKey(name: name, canonicalParameters: $0) })
                        }
                    }
                }
            }
            return Set(keys.map { .query($0) }).union(entities.map { .entity($0) })
        } catch {
            throw LarderError(error)
        }
    }

    /// A step of maintenance of all stores; returns whether nothing is left to do.
    func maintain() throws(LarderError) -> Bool {
        do {
            // The store of the values also while the disk tier is off: what is in it still expires.
            return try [outboxDisk, disk, memoryRows.used].compactMap(\.self).map { try $0.maintain() }.allSatisfy(
                \.self
            )
        } catch {
            throw LarderError(error)
        }
    }
}
