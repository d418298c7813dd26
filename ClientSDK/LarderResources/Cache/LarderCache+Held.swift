import LarderEvents
package import LarderStorage
package import LarderTime

extension LarderCache {
    /// The server's versions of all stored entities of a type that count as current, without local changes.
    ///
    /// Left out: what is invalidated, because the next read asks for it, and what is only in memory. Cost: reads
    /// all rows of the type.
    ///
    /// - Throws: `.storage` if the store cannot be read.
    package func heldVersions(ofType type: String) throws(LarderError) -> [String: Int64] {
        try heldRows(ofType: type).reduce(into: [:]) { $0[$1.key.id] = $1.version }
    }

    /// The rows of the entities of a type that count as current.
    package func heldRows(ofType type: String) throws(LarderError) -> [DiskEntity] {
        guard let disk = core.contentDisk else { return [] }
        let rows: [DiskEntity]
        do {
            rows = try disk.read { transaction in
                var rows: [DiskEntity] = []
                for id in try transaction.entityIDs(ofType: type) {
                    if let row = try transaction.entity(EntityKey(type: type, id: id)) { rows.append(row) }
                }
                return rows
            }
        } catch {
            throw LarderError(error)
        }
        return rows.filter { row in
            guard !row.isInvalidated, !core.isHidden(.entity(row.key)) else {
                return false
            }
            return max(core.invalidations.latest([], type: type), core.invalidations.clock) <= row.asked
        }
    }

    /// When the change feeds of the cache began to cover what is fetched; nil if none is followed. What was fetched before expires by
    /// time.
    package var followedSince: WallTime? { core.invalidations.feeds.values.map(\.since).min() }
}
