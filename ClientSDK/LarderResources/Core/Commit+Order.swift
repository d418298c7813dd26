import LarderStorage

extension Commit {
    /// The keys that nodes have to look up again.
    var changed: Set<StoredKey> {
        var keys = Set<StoredKey>()
        for key in entities.keys { keys.insert(.entity(key)) }
        for key in queries.keys { keys.insert(.query(key)) }
        for (key, _) in overlays { keys.insert(.entity(key)) }
        for (key, _) in queryOverlays { keys.insert(.query(key)) }
        return keys
    }

    /// Whether a key was invalidated after the request had begun, by this process or by another one, or the clock was set back.
    func wasInvalidated(_ key: StoredKey, _ disk: DiskPart) throws -> Bool {
        guard isAnswer else { return false }
        if core.order.isInvalidated(key, since: order) || moment.epoch != core.clocks.epoch { return true }
        guard disk.isThere, let before = core.order.seenCommits(order), before < seenCommits else { return false }
        var isInvalidated = false
        try disk.write { transaction in
            isInvalidated = try transaction.read { reading in
                switch key {
                case .entity(let key): try reading.entity(key)?.isInvalidated ?? false
                case .query(let key): try reading.query(key)?.isInvalidated ?? false
                }
            }
        }
        return isInvalidated
    }

    /// Whether a later request has returned the list already, of this process or of another one. The orders of two processes are
    /// compared by the wall clock.
    func isOvertaken(_ key: QueryKey, _ disk: DiskPart) throws -> Bool {
        if core.order.isOvertaken(.query(key), by: order) { return true }
        guard disk.isThere, seenCommits > 0, let stored = try current(key, disk), stored.order == 0 else {
            return false
        }
        return !stored.isInvalid(in: core.clocks.epoch) && stored.times.validatedAt > moment.wall
    }

    /// Applies the edits that came while the request was in flight to its answer.
    func replay(on query: inout DiskQuery) {
        let edits = core.order.edits(of: query.key, since: order)
        guard !edits.isEmpty else { return }
        for edit in edits { edit.change(&query) }
        var known = Set<EntityKey>()
        query.members.replace(with: query.members.entries.filter { known.insert($0.key).inserted })
    }

    /// Records that an edit or a merge has invalidated the list, so that no earlier request clears the mark.
    func noteInvalidated(_ stored: StoredQuery, _ key: QueryKey, since before: DiskQuery) {
        if stored.query.isInvalidated, !before.isInvalidated { core.order.noteInvalidated(.query(key), order) }
    }
}
