import LarderStorage

/// Stored entities that are read within the commit.
extension Commit {
    /// An entity on disk; nil if there is none.
    func stored(
        _ key: EntityKey,
        _ decode: @Sendable ([UInt8]) throws -> any Sendable,
        _ rows: Rows
    ) throws -> StoredEntity? {
        try rows.entity(key).map { try decoded($0.row, isInMemory: $0.isInMemory, decode) }
    }

    func decoded(
        _ row: DiskEntity,
        isInMemory: Bool,
        _ decode: @Sendable ([UInt8]) throws -> any Sendable
    ) throws -> StoredEntity {
        core.owner.calls(.codec)
        return StoredEntity(
            row,
            value: try decode(row.payload),
            epoch: moment.epoch,
            areTimesUncertain: core.areTimesUncertain,
            seenCommits: isInMemory ? StoredEntity.memoryOnly : seenCommits
        )
    }

    /// The value of the row of an entity.
    private mutating func row(of draft: EntityDraft, _ merge: EntityDraft.Merge, _ rows: Rows) throws
        -> StoredEntity?
    {
        if case .removed = entities[draft.key] { return nil }
        do { return try stored(draft.key, merge.decode, rows) } catch let error as DecodingError {
            // Written by another version of the app: it is replaced.
            let text = "What is stored under \"\(draft.key)\" cannot be merged: \(error)"
            note(LarderError(.storage, text, cause: error))
            return nil
        }
    }

    /// A draft combined with the stored value, unless that has been removed in this commit, and the stored value that it contains.
    mutating func merged(
        _ draft: EntityDraft,
        _ merge: EntityDraft.Merge,
        _ known: StoredEntity?,
        _ rows: Rows
    ) throws -> (draft: EntityDraft, base: StoredEntity?) {
        guard let stored = try known ?? row(of: draft, merge, rows) else { return (draft, nil) }
        // The guard of the disk decides about an older version.
        if let old = stored.version, let new = draft.version, new < old { return (draft, nil) }
        core.owner.calls(.merge)
        guard var merged = merge.draft(draft.value, stored.value) else { return (draft, nil) }
        merged.completeness = max(draft.completeness, stored.completeness)
        merged.isMemoryOnly = draft.isMemoryOnly || stored.isOffDisk && !core.hidden.isDisplaced(.entity(draft.key))
        merged.isPart = draft.isPart
        return (merged, stored)
    }
}
