import LarderStorage
import Synchronization

/// The steps that change lists.
extension Commit {
    /// A list that is in memory or was changed by this commit.
    func known(_ key: QueryKey) -> StoredQuery? {
        switch queries[key] {
        case .set(let stored): stored
        case .removed, .forgotten: nil
        case .elsewhere, nil: core.knownQuery(key)
        }
    }

    func current(_ key: QueryKey, _ disk: DiskPart) throws -> StoredQuery? {
        if let stored = known(key) { return stored }
        switch queries[key] {
        case .removed, .forgotten: return nil
        case .set, .elsewhere, nil: break
        }
        var query: DiskQuery?
        try disk.write { transaction in query = try transaction.read { reading in try reading.query(key) } }
        return query.map {
            StoredQuery($0, epoch: moment.epoch, areTimesUncertain: core.areTimesUncertain, seenCommits: seenCommits)
        }
    }

    mutating func put(_ query: DiskQuery, _ stated: StatedFreshness?, _ disk: DiskPart) throws {
        let key = query.key
        if try isOvertaken(.query(key), disk) { return }
        let times = times(stated)
        let known = try current(key, disk)
        var query = query
        query.fetchedAt = times.fetchedAt
        query.validatedAt = times.validatedAt
        query.expiresAt = times.expiresAt
        query.terms = times.terms
        (query.asked, query.answered) = (stamp, committed)
        query.edits = known?.query.edits ?? ListEdits()
        let ids = query.edits.applied(to: query.ids, askedAt: stamp)
        query.invalid = max(invalidation(of: .query(key), known?.query.invalid), query.edits.forgotten)
        if ids != query.ids {
            query.ids = ids
            // The validator stands for the keys of the reply.
            query.entityTag = nil
        }
        if let known {
            // The members that stay keep their positions.
            let entries = Array(query.members.entries)
            query.members = known.query.members
            query.members.replace(with: entries)
            query.stored = known.query.stored
        }
        set(StoredQuery(query, times: times), key)
        applied.insert(.query(key))
    }

    /// Sets a list. It is written to the disk after all steps, unless it is kept off the disk.
    mutating func set(_ stored: StoredQuery, _ key: QueryKey) {
        var stored = stored
        if isMemoryOnly || core.memoryOnly.contains(.query(key)) { stored.isMemoryOnly = true }
        if !stored.isMemoryOnly {
            stored.seenCommits = seenCommits
            listsToWrite.insert(key)
        }
        queries[key] = .set(stored)
    }

    mutating func edit(
        _ key: QueryKey,
        _ change: @escaping @Sendable (inout DiskQuery) -> Void,
        _ disk: DiskPart
    ) throws {
        guard var stored = try current(key, disk) else {
            // A reply in flight does not contain the edit.
            invalidWithoutValue.insert(.query(key))
            return
        }
        let before = stored.query
        core.owner.calls(.edit)
        change(&stored.query)
        guard stored.query != before else { return }
        stored.query.edits.note(before.members, stored.query.members, at: stamp)
        noteInvalidated(&stored, since: before)
        set(stored, key)
    }

    mutating func touch(
        _ key: QueryKey,
        _ validator: String?,
        _ stated: StatedFreshness?,
        _ disk: DiskPart
    ) throws {
        if try isOvertaken(.query(key), disk) { return }
        guard var stored = try current(key, disk), validator == nil || stored.query.entityTag == validator else {
            return
        }
        let new = times(stored.times.stated.updated(by: stated))
        // "Not modified" confirms the newest page and no other.
        let hasInvalidPages = stored.isInvalid(in: moment.epoch) && stored.query.members.notedCount > 0
        if hasInvalidPages { try stored.query.editRuns { $0.invalidatePages() } }
        stored.times = Freshness.Times(
            fetchedAt: stored.times.fetchedAt,
            validatedAt: new.validatedAt,
            expiresAt: new.expiresAt,
            terms: new.terms,
            epoch: new.epoch,
            validatedUptime: new.validatedUptime
        )
        stored.query.validatedAt = new.validatedAt
        stored.query.expiresAt = new.expiresAt
        stored.query.terms = new.terms
        stored.query.isClockUncertain = stored.times.isUncertain(in: core.clocks.epoch)
        stored.query.asked = stamp
        if isMemoryOnly {
            stored.isMemoryOnly = true
            stored.seenCommits = StoredEntity.memoryOnly
        }
        if hasInvalidPages || core.mayLackRows.load(ordering: .relaxed) {
            set(stored, key)
        } else {
            // If the list is kept off the disk, a row under its key is another list.
            let part = stored.isMemoryOnly ? DiskPart(connection: nil) : disk
            try part.write { transaction in try transaction.touch(&stored.query) }
            queries[key] = .set(stored)
        }
        applied.insert(.query(key))
    }

    mutating func invalidate(_ key: QueryKey, _ disk: DiskPart) throws {
        try disk.write { transaction in try transaction.invalidate(key, at: stamp) }
        guard var stored = known(key) else {
            if try place(of: .query(key), disk)?.isRemoval ?? true { invalidWithoutValue.insert(.query(key)) }
            if queries[key] == nil { queries[key] = .elsewhere }
            return
        }
        stored.query.invalid = max(stored.query.invalid, mark(for: stored.query.asked))
        queries[key] = .set(stored)
    }

    /// Gives an invalidation by an edit or a merge the stamp of this commit, so that no earlier request ends it.
    func noteInvalidated(_ stored: inout StoredQuery, since before: DiskQuery) {
        guard stored.query.isInvalidated, !before.isInvalidated else { return }
        stored.query.invalid = max(stored.query.invalid, stamp)
    }
}
