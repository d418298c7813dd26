/// The key of a stored entity or list.
package enum StoredKey: Hashable, Sendable {
    case entity(EntityKey)
    case query(QueryKey)

    /// The key of the entity; nil if it is one of a list.
    package var entity: EntityKey? {
        if case .entity(let key) = self { key } else { nil }
    }

    var kind: DiskKind {
        switch self {
        case .entity: .entity
        case .query: .query
        }
    }

    /// The name in the table of items.
    var item: EntityKey {
        switch self {
        case .entity(let key): key
        case .query(let key): EntityKey(type: key.name, id: key.canonicalParameters)
        }
    }
}
