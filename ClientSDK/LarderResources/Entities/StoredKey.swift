import LarderStorage

/// The key of a stored entity or query index.
enum StoredKey: Hashable, Sendable {
    case entity(EntityKey)
    case query(QueryKey)
}
