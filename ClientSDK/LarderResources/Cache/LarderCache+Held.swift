import LarderEvents
import LarderStorage

extension LarderCache {
    /// The server's versions of all stored entities of a type that count as current, without local changes.
    ///
    /// Left out: what is invalidated or has uncertain times, because the next read asks for it, and what is only in memory. Cost: reads
    /// all rows of the type.
    ///
    /// - Throws: `.storage` if the store cannot be read.
    package func heldVersions(ofType type: String) throws(LarderError) -> [String: Int64] {
        guard let disk, !core.areTimesUncertain else { return [:] }
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
        var versions: [String: Int64] = [:]
        for row in rows where !row.isInvalidated && !row.isClockUncertain && !core.unwritten.contains(.entity(row.key))
        {
            let isMarked = core.invalidations.covers(
                [],
                type: type,
                validatedAt: row.validatedAt,
                order: core.entities[row.key]?.order ?? 0
            )
            if !isMarked { versions[row.key.id] = row.version }
        }
        return versions
    }
}
