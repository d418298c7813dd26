import LarderStorage
import LarderTime
import Synchronization

extension Commit {
    /// Merges an answer or an event into a list. There is no check for later answers: the stamps of its runs tell the merge which
    /// items it must not change.
    mutating func merge(_ key: QueryKey, _ merge: QueryMerge, _ rows: Rows) throws {
        let known = try current(key, rows)
        // A list that was removed since the request began is not created again.
        let row = try rows.place(of: .query(key))
        if known == nil, isOvertaken(.query(key), row?.place) { return }
        var stored = known ?? unconfirmed(key)
        let before = stored.query
        let context = QueryMerge.Context(
            stamp: stamp,
            startedAt: moment.wall,
            receivedAt: core.configuration.wallClock.now,
            stored: try self.stored(merge.keys, rows),
            isInvalid: stored.isInvalid(in: moment.epoch)
        )
        try merge.apply(&stored.query, context)
        noteInvalidated(&stored, since: before)
        let hasChanged = stored.query != before
        // A merge without a change does not create a list: a stored empty list would say that there are no items.
        if !hasChanged, !merge.confirms { return }
        if merge.confirms, stamp >= before.asked {
            let new = times(known.flatMap { $0.times.stated }.updated(by: merge.stated))
            if hasChanged { stored.times = new } else { stored.times.confirm(new) }
            stored.query.asked = stamp
            // Merged replies keep edits by their items.
            stored.query.edits = ListEdits()
            stored.query.take(stored.times, epoch: core.clocks.epoch)
            stored.query.invalid = invalidation(of: .query(key), stored.query.invalid)
        }
        if hasChanged || known == nil || row == nil { return set(stored, key, isOffDisk: row?.isOffDisk ?? false) }
        if stored.query != before { try rows.touch(&stored.query) }
        queries[key] = .set(stored)
    }

    /// An empty list that the server has never confirmed.
    private func unconfirmed(_ key: QueryKey) -> StoredQuery {
        var times = times(nil)
        times.validatedAt = Freshness.Times.never
        times.validatedUptime = nil
        let query = DiskQuery(
            key,
            ids: [],
            isComplete: false,
            fetchedAt: times.fetchedAt,
            validatedAt: times.validatedAt,
            expiresAt: times.expiresAt
        )
        return StoredQuery(query: query, times: times)
    }

    private func stored(_ keys: [EntityKey], _ rows: Rows) throws -> Set<EntityKey> {
        var found = Set<EntityKey>()
        for key in keys {
            switch entities[key] {
            case .set, .elsewhere: found.insert(key)
            case .removed: break
            case nil:
                // Also a later value that memory has evicted.
                let row = try rows.place(of: .entity(key))?.place
                if let place = place(of: .entity(key), row), !place.isRemoval { found.insert(key) }
            }
        }
        return found
    }
}
