import LarderStorage

extension CacheUpdate {
    /// Invalidates the values that this update would change.
    var invalidatingItsKeys: CacheUpdate {
        var update = CacheUpdate()
        for step in steps {
            switch step {
            case .put(let draft, _, _, _): update.invalidate(draft.key)
            case .modify(let key, _), .remove(let key, _), .touch(let key, _, _), .invalidate(let key):
                update.invalidate(key)
            case .putQuery(let query, _): update.invalidate(query.key)
            case .insertNewest(let items): update.invalidate(items.timeline)
            case .editQuery(let key, _), .mergeQuery(let key, _), .touchQuery(let key, _, _), .removeQuery(let key),
                .invalidateQuery(let key):
                update.invalidate(key)
            case .invalidateTag: update.steps.append(step)
            case .token, .metadata, .overlay, .queryOverlay, .reread, .keepOffDisk:
                break
            }
        }
        return update
    }
}
