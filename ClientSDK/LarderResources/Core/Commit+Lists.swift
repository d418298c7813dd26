import LarderMemory
import LarderStorage
import LarderTime

extension ListChange {
    /// Confirms a list: its newest page and no other.
    ///
    /// - Parameter validator: nil: any.
    init(confirming validator: String?, _ stated: StatedFreshness?) {
        self.init(.confirmation(validator: validator, stated)) { _, _ in }
    }
}

/// The steps that change lists.
extension Commit {
    /// A list that is in memory or was changed by this commit.
    func known(_ key: QueryKey) -> StoredQuery? { queries[key].map(\.stored) ?? core.queries[key] }

    func current(_ key: QueryKey, _ rows: Rows) throws -> StoredQuery? {
        if let stored = known(key) { return stored }
        if case .removed = queries[key] { return nil }
        return try rows.query(key).map { StoredQuery($0) }
    }

    mutating func change(_ key: QueryKey, _ change: ListChange, _ rows: Rows) throws {
        let known = try current(key, rows)
        let row = try rows.place(of: .query(key))
        let isOvertaken = isOvertaken(.query(key), row?.place)
        // A step before this one may have decided.
        var isOffDisk = known != nil && (listsToWrite[key] ?? rows.isOffDisk(.query(key), row))
        /// What the source has said, if the list is confirmed.
        var stated: StatedFreshness??
        switch change.origin {
        case .reply(let terms):
            if isOvertaken { return }
            (stated, isOffDisk) = (.some(terms), false)
        case .newestPage(let terms):
            if stamp >= known?.query.asked ?? .never { stated = .some(terms) }
        case .confirmation(let validator, let terms):
            guard let known, !isOvertaken, validator == nil || known.query.entityTag == validator else { return }
            stated = .some(known.times.stated.updated(by: terms))
        case .part, .edit: break
        }
        // A reply in flight does not contain the edit.
        if known == nil, case .edit = change.origin { return noteInvalid(.query(key)) }
        // A list that was removed since the request began is not created again.
        if known == nil, isOvertaken { return }
        var stored = known ?? unconfirmed(key)
        let before = stored.query
        let context = ListChange.Context(
            stamp: stamp,
            startedAt: moment.wall,
            receivedAt: core.configuration.wallClock.now,
            committed: committed,
            stored: try self.stored(change.keys, rows)
        )
        stored.query.isInvalidated = false
        try change.apply(&stored.query, context)
        var isMadeStale = stored.query.isInvalidated
        stored.query.invalid = max(stored.query.invalid, before.invalid)
        // Whether a reply that has come since the write was sent contains it is not known.
        if let sentAt = change.sentAt, sentAt < before.asked, stored.query != before { isMadeStale = true }
        // No earlier request ends it.
        if isMadeStale { stored.query.invalid = max(stored.query.invalid, stamp, stored.query.asked.successor) }
        let hasChanged = stored.query != before
        // Without a change a part creates no list: a stored empty one would say that there are no items.
        guard hasChanged || stated != nil else { return }
        var isConfirmed = !hasChanged
        if case .confirmation = change.origin { isConfirmed = true }
        if let stated {
            let new = times(stated)
            if isConfirmed { stored.times.confirm(new) } else { stored.times = new }
            stored.query.times = stored.times.row
            stored.query.asked = stamp
            stored.query.invalid = invalidation(of: .query(key), stored.query.invalid)
        }
        if case .edit = change.origin { stored.query.edits.note(before.members, stored.query.members, at: stamp) }
        if !hasChanged, row != nil {
            try rows.touch(&stored.query)
        } else {
            // Written after all steps.
            listsToWrite[key] = isMemoryOnly || isOffDisk || core.memoryOnly.contains(.query(key))
        }
        queries[key] = .set(stored)
    }

    /// An empty list that the server has never confirmed.
    private func unconfirmed(_ key: QueryKey) -> StoredQuery {
        var times = times(nil)
        times.validatedAt = Freshness.Times.never
        times.validatedUptime = nil
        return StoredQuery(query: DiskQuery(key, times: times.row), times: times)
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
