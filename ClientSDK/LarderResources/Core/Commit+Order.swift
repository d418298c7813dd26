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
    mutating func wasInvalidated(_ key: StoredKey, _ disk: DiskPart) throws -> Bool {
        guard isAnswer, try isInvalid(key, disk) else { return false }
        isOutdated = true
        return true
    }

    private func isInvalid(_ key: StoredKey, _ disk: DiskPart) throws -> Bool {
        if core.order.isInvalidated(key, since: order) || moment.epoch != core.clocks.epoch { return true }
        guard disk.isThere, let start = core.order.start(of: order), start.seenCommits < seenCommits,
            !start.invalid.contains(key)
        else { return false }
        return try confirmation(of: key, disk)?.isInvalidated ?? false
    }

    /// Whether a later request has returned the list already, of this process or of another one.
    func isOvertaken(_ key: QueryKey, _ disk: DiskPart) throws -> Bool {
        try core.order.isOvertaken(.query(key), by: order) || isConfirmedLater(.query(key), disk)
    }

    /// Whether another process has confirmed a key by a later request. The requests of two processes are compared by the wall clock.
    func isConfirmedLater(_ key: StoredKey, _ disk: DiskPart) throws -> Bool {
        guard isAnswer, disk.isThere, let start = core.order.start(of: order), start.seenCommits < seenCommits,
            let row = try confirmation(of: key, disk)
        else { return false }
        return !row.isInvalidated && !row.isClockUncertain && row.at > moment.wall
    }

    private func confirmation(of key: StoredKey, _ disk: DiskPart) throws -> DiskStore.Confirmation? {
        var result: DiskStore.Confirmation?
        try disk.write { transaction in
            switch key {
            case .entity(let key): result = try transaction.confirmation(of: key)
            case .query(let key): result = try transaction.confirmation(of: key)
            }
        }
        return result
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
