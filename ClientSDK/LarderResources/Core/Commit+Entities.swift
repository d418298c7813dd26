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
        return try row.map { try decoded($0, decode) }
    }

    func decoded(
        _ row: DiskEntity,
        _ decode: @Sendable ([UInt8]) throws -> any Sendable
    ) throws -> StoredEntity {
        core.owner.calls(.codec)
        return StoredEntity(
            row,
            value: try decode(row.payload),
            epoch: moment.epoch,
            areTimesUncertain: core.areTimesUncertain,
            seenCommits: seenCommits
        )
    }

    /// The version of an entity on disk; nil if there is none.
    func storedVersion(_ key: EntityKey, _ disk: DiskPart) throws -> Int64? {
        var version: Int64?
        try disk.write { transaction in version = try transaction.read { reading in try reading.entity(key)?.version } }
        return version
    }

    /// The stored value that a draft is combined with.
    enum MergeBase {
        /// Nil: there is none.
        case known(StoredEntity?)
        /// The disk can be neither written nor read, or its row lacks a change that memory has lost.
        case unreadable
    }

    /// The value of the row of an entity, also if nothing can be written, as on a full disk.
    private mutating func row(of draft: EntityDraft, _ merge: EntityDraft.Merge, _ disk: DiskPart) throws -> MergeBase {
        if case .removed = entities[draft.key] { return .known(nil) }
        do {
            if disk.isThere || !hasFailedDisk { return .known(try stored(draft.key, merge.decode, disk)) }
            guard let store = core.contentDisk, !core.unwritten.contains(.entity(draft.key)) else { return .unreadable }
            return .known(try store.entity(draft.key).map { try decoded($0, merge.decode) })
        } catch let error as DecodingError {
            // Written by another version of the app: it is replaced.
            let text = "What is stored under \"\(draft.key)\" cannot be merged: \(error)"
            note(LarderError(.storage, text, cause: error))
            return .known(nil)
        } catch  where hasFailedDisk {
            note(LarderError(error))
            return .unreadable
        }
    }

    /// A draft combined with the stored value, unless that has been removed in this commit, and the stored value that it contains.
    ///
    /// - Returns: also how to combine it with its row later, if the row could not be read.
    mutating func merged(
        _ draft: EntityDraft,
        _ merge: EntityDraft.Merge,
        _ known: StoredEntity?,
        _ disk: DiskPart
    ) throws -> (draft: EntityDraft, base: StoredEntity?, unread: EntityDraft.Merge?) {
        let base = if let known { MergeBase.known(known) } else { try row(of: draft, merge, disk) }
        guard case .known(let found) = base else { return (draft, nil, merge) }
        guard let stored = found else { return (draft, nil, nil) }
        // The guard of the disk decides about an older version.
        if let old = stored.version, let new = draft.version, new < old { return (draft, nil, nil) }
        core.owner.calls(.merge)
        guard var merged = merge.draft(draft.value, stored.value) else { return (draft, nil, nil) }
        merged.completeness = max(draft.completeness, stored.completeness)
        merged.isMemoryOnly = draft.isMemoryOnly || stored.isMemoryOnly
        merged.isPart = draft.isPart
        return (merged, stored, stored.unreadMerge)
    }
}
