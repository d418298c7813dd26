import LarderStorage

extension Commit {
    /// What the nodes have to look at again.
    var changed: Set<StoredKey> {
        var keys = Set<StoredKey>()
        for key in entities.keys { keys.insert(.entity(key)) }
        for key in queries.keys { keys.insert(.query(key)) }
        for (key, _) in overlays { keys.insert(.entity(key)) }
        for (key, _) in queryOverlays { keys.insert(.query(key)) }
        return keys
    }

    /// What was told of while the request was on its way is not undone by its answer.
    func replay(on query: inout DiskQuery) {
        let edits = core.order.edits(of: query.key, since: order)
        guard !edits.isEmpty else { return }
        for edit in edits { edit.change(&query) }
        var known = Set<EntityKey>()
        query.ids.removeAll { !known.insert($0).inserted }
    }

    /// Where a list was declared stale by what it holds: no request that began before may undo that.
    func noteInvalidated(_ stored: StoredQuery, _ key: QueryKey, since before: DiskQuery) {
        if stored.query.isInvalidated, !before.isInvalidated { core.order.noteInvalidated(.query(key), order) }
    }
}
