import LarderStorage

/// Stored entities that are read within the commit.
extension Commit {
    /// An entity on disk; nil if there is none.
    func stored(
        _ key: EntityKey,
        _ decode: @Sendable ([UInt8]) throws -> any Sendable,
        _ disk: DiskPart
    ) throws -> StoredEntity? {
        var row: DiskEntity?
        try disk.write { transaction in row = try transaction.read { reading in try reading.entity(key) } }
        guard let row else { return nil }
        core.owner.calls(.codec)
        return StoredEntity(
            row,
            value: try decode(row.payload),
            epoch: moment.epoch,
            areTimesUncertain: core.areTimesUncertain,
            seenCommits: seenCommits
        )
    }

    /// A draft combined with the stored value, unless that has been removed in this commit, and the stored value that it contains.
    mutating func merged(
        _ draft: EntityDraft,
        _ merge: EntityDraft.Merge,
        _ known: StoredEntity?,
        _ disk: DiskPart
    ) throws -> (EntityDraft, StoredEntity?) {
        var stored = known
        if stored == nil {
            if case .removed = entities[draft.key] { return (draft, nil) }
            do { stored = try self.stored(draft.key, merge.decode, disk) } catch let error as DecodingError {
                // Written by another version of the app: it is replaced.
                note(
                    LarderError(
                        .storage,
                        "What is stored under \"\(draft.key)\" cannot be merged: \(error)",
                        cause: error
                    )
                )
            }
        }
        guard let stored else { return (draft, nil) }
        // The guard of the disk decides about an older version.
        if let old = stored.version, let new = draft.version, new < old { return (draft, nil) }
        core.owner.calls(.merge)
        guard var merged = merge.draft(stored.value) else { return (draft, nil) }
        merged.completeness = max(draft.completeness, stored.completeness)
        merged.isMemoryOnly = draft.isMemoryOnly || stored.isMemoryOnly
        merged.isPart = draft.isPart
        return (merged, stored)
    }
}
