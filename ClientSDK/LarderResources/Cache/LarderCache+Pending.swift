package import LarderStorage
import Synchronization

/// What a write needs to know about stored values and pending changes.
extension LarderCache {
    /// The stored value of an entity with its pending changes; nil if none is stored. What is not in memory is read on the calling thread.
    package func visible<E: CacheEntity>(_ type: E.Type, _ key: EntityKey) -> E? {
        core.checkForeignCommits(at: core.now())
        let stored = core.entity(key) { try E.codec.decode($0) }?.stored.value
        return core.overlays.visible(stored, key).value as? E
    }

    /// The server's ID of an entity that was created on this device under a local one; nil if its creation has not ended, or if more than 64
    /// later ones have. For views that still hold the local one. It survives a restart. Safe from any thread.
    public func serverID(of local: String) -> String? { outbox.state.withLock { $0.serverIDs.serverID(of: local) } }

    /// The ordering scope of the newest pending change of an entity; nil if there is none.
    package func pendingScope(of key: EntityKey) -> String? {
        guard let newest = core.overlays.pending(.entity(key)).last else { return nil }
        return outbox.state.withLock { $0.queue[newest.operation]?.scope }
    }

    /// Whether an entity that was created on this device is still to be created, or its server ID has just come: an operation of another scope
    /// waits for it.
    package func isComing(_ local: String, besides scope: String) -> Bool {
        let changes = core.overlays.pending { $0.id == local }.keys.flatMap { core.overlays.pending(.entity($0)) }
        let isPending = outbox.state.withLock { state in
            changes.contains { state.queue[$0.operation].map { $0.scope != scope } ?? false }
        }
        // The ID is known before the creation is pending no longer.
        return isPending || serverID(of: local) != nil
    }

    /// The ordering scope of the newest pending change of an entity of any type that has one of the identifiers. Cost: O(n) for all n
    /// entities with pending changes.
    package func pendingScope(ofAny ids: Set<String>) -> String? {
        for key in core.overlays.pending(where: { ids.contains($0.id) }).keys {
            if let scope = pendingScope(of: key) { return scope }
        }
        return nil
    }
}
