import LarderStorage
import LarderTime
import Synchronization

extension Commit {
    /// Merges an answer or an event into a list. There is no check for later answers: the orders tell the merge which
    /// items it must not change.
    mutating func merge(_ key: QueryKey, _ merge: QueryMerge, _ disk: DiskPart) throws {
        let known = try current(key, disk)
        // A list that was removed since the request began is not created again.
        if known == nil, core.order.isRemoved(.query(key), since: order) { return }
        var stored = known ?? unconfirmed(key)
        let (before, orders) = (stored.query, stored.orders)
        // A list that has left memory since its last answer has no order of its own.
        let confirmedOrder = max(stored.order, core.order.lastApplied(.query(key)))
        let context = QueryMerge.Context(
            order: order,
            startedAt: moment.wall,
            receivedAt: core.configuration.wallClock.now,
            stored: try self.stored(merge.keys, disk),
            isReset: core.resets.contains(key),
            confirmedOrder: confirmedOrder,
            isInvalid: stored.isInvalid(in: moment.epoch)
        )
        core.owner.calls(.merge)
        try merge.apply(&stored.query, &stored.orders, context)
        noteInvalidated(stored, key, since: before)
        let hasChanged = stored.query != before
        // A merge without a change does not create a list: a stored empty list would say that there are no items.
        if !hasChanged, !merge.confirms, stored.orders == orders { return }
        if merge.confirms, order >= confirmedOrder {
            applied.insert(.query(key))
            let new = times(known.flatMap { $0.times.stated }.updated(by: merge.stated))
            stored.times = Freshness.Times(
                fetchedAt: hasChanged ? new.fetchedAt : stored.times.fetchedAt,
                validatedAt: new.validatedAt,
                expiresAt: new.expiresAt,
                terms: new.terms,
                epoch: new.epoch,
                validatedUptime: new.validatedUptime
            )
            stored.order = order
            stored.query.fetchedAt = stored.times.fetchedAt
            stored.query.validatedAt = new.validatedAt
            stored.query.expiresAt = new.expiresAt
            stored.query.terms = new.terms
            stored.query.isInvalidated = try wasInvalidated(.query(key), disk)
            stored.query.isClockUncertain = false
        }
        if hasChanged || known == nil || core.mayLackRows.load(ordering: .relaxed) { return set(stored, key) }
        if stored.query != before {
            try disk.write { transaction in
                try transaction.touch(&stored.query)
                if stored.query.isInvalidated { try transaction.invalidate(key) }
            }
        }
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
        return StoredQuery(query, times: times, order: 0)
    }

    private func stored(_ keys: [EntityKey], _ disk: DiskPart) throws -> Set<EntityKey> {
        var found = Set<EntityKey>()
        for key in keys {
            switch entities[key] {
            case .set, .elsewhere: found.insert(key)
            case .removed, .forgotten: break
            case nil:
                if overtaken.contains(key) || core.entities[key] != nil {
                    found.insert(key)
                    continue
                }
                try disk.write { transaction in
                    if try transaction.read({ reading in try reading.entity(key) }) != nil { found.insert(key) }
                }
            }
        }
        return found
    }
}
