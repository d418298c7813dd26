import LarderMemory
import LarderStorage
import LarderTime

/// The steps that change lists.
extension Commit {
    /// A list that is in memory or was changed by this commit.
    func known(_ key: QueryKey) -> StoredQuery? {
        switch queries[key] {
        case .set(let stored): stored
        case .removed, .elsewhere: nil
        case nil: core.queries[key]
        }
    }

    func current(_ key: QueryKey, _ rows: Rows) throws -> StoredQuery? {
        if let stored = known(key) { return stored }
        if case .removed = queries[key] { return nil }
        return try rows.query(key).map {
            StoredQuery($0, epoch: moment.epoch, areTimesUncertain: core.areTimesUncertain)
        }
    }

    mutating func put(_ query: DiskQuery, _ stated: StatedFreshness?, _ rows: Rows) throws {
        let key = query.key
        if isOvertaken(.query(key), try rows.place(of: .query(key))?.place) { return }
        let known = try current(key, rows)
        let times = times(stated)
        var query = query
        query.take(times, epoch: core.clocks.epoch)
        (query.asked, query.answered) = (stamp, committed)
        query.edits = known?.query.edits ?? ListEdits()
        let ids = query.edits.applied(to: query.ids, askedAt: stamp)
        query.invalid = max(invalidation(of: .query(key), known?.query.invalid), query.edits.forgotten)
        if ids != query.ids {
            query.ids = ids
            // The validator stands for the keys of the reply.
            query.entityTag = nil
        }
        if let known { query.stored = known.query.stored }
        set(StoredQuery(query: query, times: times), key, isOffDisk: false)
    }

    /// Sets a list. It is written after all steps.
    ///
    /// - Parameter isOffDisk: whether the list may not be on the disk, whatever the reply says.
    mutating func set(_ stored: StoredQuery, _ key: QueryKey, isOffDisk: Bool) {
        listsToWrite[key] = isMemoryOnly || isOffDisk || core.memoryOnly.contains(.query(key))
        queries[key] = .set(stored)
    }

    mutating func edit(
        _ key: QueryKey,
        _ change: (inout DiskQuery, WallTime) -> Void,
        _ rows: Rows
    ) throws {
        guard var stored = try current(key, rows) else {
            // A reply in flight does not contain the edit.
            noteInvalid(.query(key))
            return
        }
        let before = stored.query
        change(&stored.query, moment.wall)
        guard stored.query != before else { return }
        stored.query.edits.note(before.members, stored.query.members, at: stamp)
        noteInvalidated(&stored, since: before)
        set(stored, key, isOffDisk: rows.isOffDisk(.query(key), try rows.place(of: .query(key))))
    }

    mutating func touch(
        _ key: QueryKey,
        _ validator: String?,
        _ stated: StatedFreshness?,
        _ rows: Rows
    ) throws {
        let row = try rows.place(of: .query(key))
        if isOvertaken(.query(key), row?.place) { return }
        guard var stored = try current(key, rows), validator == nil || stored.query.entityTag == validator else {
            return
        }
        let new = times(stored.times.stated.updated(by: stated))
        // "Not modified" confirms the newest page and no other.
        let hasInvalidPages = stored.isInvalid(in: moment.epoch) && stored.query.members.notedCount > 0
        if hasInvalidPages { try stored.query.editRuns { $0.invalidatePages() } }
        stored.times.confirm(new)
        stored.query.take(stored.times, epoch: core.clocks.epoch)
        stored.query.asked = stamp
        if hasInvalidPages || row == nil {
            set(stored, key, isOffDisk: row?.isOffDisk ?? false)
        } else {
            try rows.touch(&stored.query)
            queries[key] = .set(stored)
        }
    }

    /// Gives an invalidation by an edit or a merge the stamp of this commit, so that no earlier request ends it.
    func noteInvalidated(_ stored: inout StoredQuery, since before: DiskQuery) {
        guard stored.query.isInvalidated, !before.isInvalidated else { return }
        stored.query.invalid = max(stored.query.invalid, stamp)
    }
}
