import LarderStorage
import LarderTime

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

/// Entities whose times are renewed and whose values stay.
extension Commit {
    /// An equal value: only its times are renewed.
    ///
    /// - Parameters:
    ///   - isPart: whether it came as a part of another value: then a lifetime that was stated for itself is not shortened.
    ///   - validator: the validator of the row that is renewed; nil: any.
    mutating func renew(
        _ key: EntityKey,
        _ known: StoredEntity?,
        _ stated: StatedFreshness?,
        isPart: Bool = false,
        ifEntityTag validator: String? = nil,
        _ rows: Rows
    ) throws {
        applied.insert(.entity(key))
        let old = try known?.times ?? storedTimes(key, rows)
        var new = times((old?.stated).updated(by: stated))
        if isPart, let old, !old.isUncertain, old.statedLifetime != nil, old.expiresAt > new.expiresAt {
            new.expiresAt = old.expiresAt
            new.terms = old.terms
        }
        try rows.touch(
            key,
            new,
            isUncertain: new.isUncertain(in: core.clocks.epoch),
            asked: stamp,
            ifEntityTag: validator
        )
        guard var stored = known else {
            entities[key] = .elsewhere
            return
        }
        stored.times.confirm(new)
        stored.asked = max(stored.asked, stamp)
        entities[key] = .set(stored)
    }

    mutating func touch(
        _ key: EntityKey,
        _ validator: String?,
        _ stated: StatedFreshness?,
        _ rows: Rows
    ) throws {
        if isOvertaken(.entity(key), try rows.place(of: .entity(key))?.place) { return }
        let known = current(key)
        // A value with another validator is not the confirmed one.
        if let known, let validator, known.validator != validator { return }
        try renew(key, known, stated, ifEntityTag: known == nil ? validator : nil, rows)
    }

    private func storedTimes(_ key: EntityKey, _ rows: Rows) throws -> Freshness.Times? {
        try rows.entity(key).map { Freshness.Times($0.row, epoch: moment.epoch) }
    }
}
