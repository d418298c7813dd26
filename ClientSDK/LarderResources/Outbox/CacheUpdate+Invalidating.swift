import LarderStorage

extension CacheUpdate {
    /// Invalidates the values that this update would change.
    var invalidatingItsKeys: CacheUpdate {
        var update = CacheUpdate()
        for step in steps {
            switch step {
            case .put(let draft, _, _): update.invalidate(draft.key)
            case .modify(let key, _), .remove(let key, _): update.invalidate(key)
            case .touch(let key, _, _), .invalidate(let key): update.invalidate(key)
            case .changeList(let key, _), .insertNewest(let key, _), .removeQuery(let key): update.invalidate(key)
            case .invalidateTag, .noteVersion: update.steps.append(step)
            case .token, .metadata, .keepOffDisk: break
            }
        }
        return update
    }
}
