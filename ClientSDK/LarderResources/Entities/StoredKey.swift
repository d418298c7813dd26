import LarderStorage

/// What something in the store is called, whichever kind it is.
enum StoredKey: Hashable, Sendable {
    case entity(EntityKey)
    case query(QueryKey)
}
