import LarderStorage

/// The entities that may be in another place of a declared list than its stored index says.
struct ListChanges: Sendable {
    /// Entities that have changed since the source returned the list.
    let recorded: Set<EntityKey>
    /// Entities with pending local changes.
    let pending: Set<EntityKey>
    /// Whether others have changed that are no longer stored: the list is stale.
    let areLost: Bool
    /// The part that declared lists of the type depend on: it changes with every entity of the type.
    let part: StoredKey

    func contains(_ key: EntityKey) -> Bool { recorded.contains(key) || pending.contains(key) }

    static func part(ofType type: String) -> StoredKey { .query(QueryKey("=members", [.init("type", type)])) }
}
