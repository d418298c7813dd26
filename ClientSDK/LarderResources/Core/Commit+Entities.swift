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
        try rows.entity(key).map { row in
            let value = try decode(row.payload)
            return StoredEntity(row, value: value)
        }
    }

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
        isOffDisk: Bool,
        _ rows: Rows
    ) throws -> (draft: EntityDraft, base: StoredEntity?) {
        guard let stored = try known ?? row(of: draft, merge, rows) else { return (draft, nil) }
        // The guard of the disk decides about an older version.
        if let old = stored.version, let new = draft.version, new < old { return (draft, nil) }
        guard var merged = merge.draft(draft.value, stored.value) else { return (draft, nil) }
        merged.completeness = max(draft.completeness, stored.completeness)
        merged.isMemoryOnly = draft.isMemoryOnly || isOffDisk
        merged.list = draft.list
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
        let old = try known?.times ?? rows.entity(key).map { Freshness.Times($0.times, asked: $0.asked) }
        var new = times((old?.stated).updated(by: stated))
        if isPart, let old, old.asked >= core.invalidations.clock, old.statedLifetime != nil,
            old.expiresAt > new.expiresAt
        {
            new.expiresAt = old.expiresAt
            new.terms = old.terms
        }
        try rows.touch(key, new.row, asked: stamp, ifEntityTag: validator)
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
        if let place = place(of: .entity(key), try rows.place(of: .entity(key))?.place),
            isOvertaken(by: place, version: nil)
        {
            return try dropAnswer(key, place, rows)
        }
        let known = current(key)
        // A value with another validator is not the confirmed one.
        if let known, let validator, known.validator != validator { return }
        try renew(key, known, stated, ifEntityTag: known == nil ? validator : nil, rows)
    }
}

/// Steps that change, remove or invalidate what is stored.
extension Commit {
    mutating func modify(
        _ key: EntityKey,
        _ modifier: StoredEntityModifier,
        _ rows: Rows
    ) throws {
        var known = current(key)
        if known == nil, case .removed = entities[key] { return }
        if known == nil { known = try stored(key, modifier.decode, rows) }
        guard var stored = known else { return }
        let draft = try modifier.change(stored.value)
        if try keeps(key, stored.place, over: draft.version == stored.version ? nil : draft.version, rows) { return }
        stored.value = draft.value
        stored.version = draft.version ?? stored.version
        // The value no longer matches the validator.
        stored.validator = nil
        // A change of the value does not end an invalidation. Which tags it has is not known here.
        let isStale = max(stored.invalid, core.invalidations.latest, core.invalidations.clock) > stored.asked
        // Whether a reply that has come since the write was sent contains it is not known.
        let isOvertaken = modifier.sentAt.map { $0 < stored.asked } ?? false
        // Its lifetime ends by a clock that was set back since, which its row does not say.
        if stored.times.asked < core.invalidations.clock { stored.times.terms.remove(.lifetimeStated) }
        stored.asked = max(stored.asked, stamp)
        stored.changed = committed
        if isStale { stored.invalid = stored.asked.successor }
        let payload = try draft.encoded()
        stored.cost = StoredEntity.overhead + payload.count
        let row = try rows.place(of: .entity(key))
        let isOffDisk = isMemoryOnly || rows.isOffDisk(.entity(key), row) || core.memoryOnly.contains(.entity(key))
        let outcome = try write(stored, payload, key, isOffDisk: isOffDisk, row, rows)
        guard outcome == .stored || outcome == nil else { return }
        entities[key] = .set(stored)
        changedValues.insert(key)
        if isOvertaken { try invalidate(.entity(key), rows) }
    }

    mutating func remove(_ key: EntityKey, _ version: Int64?, _ rows: Rows) throws {
        let row = try rows.place(of: .entity(key))
        if let place = place(of: .entity(key), row?.place) {
            if let version, let known = place.version {
                if known > version { return }
            } else if try keeps(key, place, over: version, rows) {
                return
            } else if isOvertaken(by: place, version: nil) {
                // A late answer says nothing about what a later request or an event has brought.
                return try dropAnswer(key, place, rows)
            }
        }
        let isOffDisk = isMemoryOnly || row?.isOffDisk ?? false || core.memoryOnly.contains(.entity(key))
        guard try rows.bury(key, version: version, isOffDisk: isOffDisk) else { return }
        var names = try rows.queries(with: key)
        entities[key] = .removed
        changedValues.insert(key)
        // Lists that this commit has changed and not written yet.
        for case (let name, .set(let stored)) in queries where stored.query.members.contains(key) { names.insert(name) }
        let change = ListChange(.edit) { list, _ in
            list.members.remove(key)
            // It stands for the keys of a reply: "not modified" must not confirm the list without the item.
            list.entityTag = nil
        }
        for name in names { try self.change(name, change, rows) }
    }

    /// - Parameter mark: nil: that of the commit.
    mutating func invalidate(_ key: StoredKey, at mark: Stamp? = nil, _ rows: Rows) throws {
        let mark = max(mark ?? stamp, stamp)
        try rows.invalidate(key, at: mark)
        switch key {
        case .entity(let name):
            if var stored = current(name) {
                // Later than a change of this commit.
                stored.invalid = max(stored.invalid, mark == stored.asked ? mark.successor : mark)
                entities[name] = .set(stored)
                return
            }
            if entities[name] == nil { entities[name] = .elsewhere }
        case .query(let name):
            try invalidate(.entity(EntityKey(wholeValueOf: name)), rows)
            if var stored = known(name) {
                stored.query.invalid = max(stored.query.invalid, mark == stored.query.asked ? mark.successor : mark)
                queries[name] = .set(stored)
                return
            }
            if queries[name] == nil { queries[name] = .elsewhere }
        }
        if place(of: key, try rows.place(of: key)?.place)?.isRemoval ?? true { noteInvalid(key) }
    }

    /// Drops an answer that is overtaken. If no other one has confirmed the value since, as after a local change, it is asked for again.
    mutating func dropAnswer(_ key: EntityKey, _ place: DiskStore.Place, _ rows: Rows) throws {
        let confirmed = try current(key)?.times.validatedAt ?? rows.entity(key)?.validatedAt
        if let confirmed, confirmed < (page?.moment ?? moment).wall {
            try invalidate(.entity(key), at: place.asked.successor, rows)
        }
    }

    /// Notes that a version exists. An older row is invalidated, which other processes and later ones see.
    mutating func noteVersion(_ key: EntityKey, _ version: Int64, _ rows: Rows) throws {
        // A mark stands for the noted versions that were forgotten.
        if core.invalidations.note(key, version: version, at: stamp) { hasNewMarks = true }
        let place = place(of: .entity(key), try rows.place(of: .entity(key))?.place)
        if let place, !place.isRemoval, place.version.map({ $0 < version }) ?? true {
            return try invalidate(.entity(key), rows)
        }
        // Its nodes look it up again.
        if entities[key] == nil { entities[key] = current(key).map { Change.set($0) } ?? Change.elsewhere }
    }

    /// Notes that a key is invalidated although nothing is stored under it: what a request in flight returns is stale.
    mutating func noteInvalid(_ key: StoredKey) { notedPlaces.append((key, .init(asked: .never, invalid: stamp))) }
}
