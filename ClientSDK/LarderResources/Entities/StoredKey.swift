import LarderStorage

/// The key of a stored entity or query index.
enum StoredKey: Hashable, Sendable {
    case entity(EntityKey)
    case query(QueryKey)

    /// The key of the entity; nil if it is one of a list.
    var entity: EntityKey? {
        if case .entity(let key) = self { key } else { nil }
    }
}

extension DiskConnection {
    /// The place of a row in the order of changes; nil if there is none.
    func place(of key: StoredKey) throws(DiskError) -> DiskStore.Place? {
        switch key {
        case .entity(let key): try place(of: key)
        case .query(let key): try place(of: key)
        }
    }

    func remove(_ key: StoredKey) throws(DiskError) {
        switch key {
        case .entity(let key): try remove(key)
        case .query(let key): try remove(key)
        }
    }

    func invalidate(_ key: StoredKey, at stamp: Stamp) throws(DiskError) {
        switch key {
        case .entity(let key): try invalidate(key, at: stamp)
        case .query(let key): try invalidate(key, at: stamp)
        }
    }
}
