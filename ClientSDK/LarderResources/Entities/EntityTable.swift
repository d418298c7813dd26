import LarderMemory
import LarderStorage
import Synchronization

/// The entities in memory, and the pending changes over them. Safe from any thread.
///
/// Server values and pending changes are separate: the subscript returns the server's value, and `visible` applies the
/// pending changes to a value.
final class EntityTable: Sendable {
    private let memory: MemoryTier<EntityKey, StoredEntity>
    private let overlays = Mutex<[EntityKey: [Overlay]]>([:])
    private let queryOverlays = Mutex<[QueryKey: [QueryOverlay]]>([:])
    private let overlayCount = Atomic<Int>(0)

    private let costMaximum: Int

    init(limits: MemoryTier<EntityKey, StoredEntity>.Limits, departures: EvictionTally) {
        memory = MemoryTier(limits: limits, onDeparture: { departures.note($0) })
        costMaximum = limits.cost
    }

    /// The server's value of an entity, if it is in memory.
    subscript(key: EntityKey) -> StoredEntity? { memory[key] }

    /// Stores an entity. One that exceeds the memory limit evicts all others and stays, so that the read that fetched
    /// it gets it.
    func store(_ entity: StoredEntity, for key: EntityKey) {
        memory.store(entity, for: key, cost: min(entity.cost, costMaximum))
    }

    func remove(_ key: EntityKey) { memory.remove(key) }

    func removeAll() { memory.removeAll() }

    func trim(toCost cost: Int) { memory.trim(cost: cost) }

    /// The keys of all entities in memory, in no order.
    var keys: [EntityKey] { memory.keys }

    /// The encoded size of an entity in bytes; 0 if it is not in memory.
    func bytes(of key: EntityKey) -> Int { memory.peek(key).map { max(0, $0.cost - StoredEntity.overhead) } ?? 0 }

    /// The sum of the entities' costs against the memory limit, in bytes.
    var cost: Int { memory.cost }

    var statistics: MemoryTier<EntityKey, StoredEntity>.Statistics { memory.statistics }

    // MARK: Pending changes

    /// The value with all pending changes applied, oldest first, and their number.
    func visible(_ value: (any Sendable)?, _ key: EntityKey) -> (value: (any Sendable)?, pending: Int) {
        guard overlayCount.load(ordering: .relaxed) > 0 else { return (value, 0) }
        let list = overlays.withLock { $0[key] ?? [] }
        return (list.reduce(value) { $1.apply($0) }, list.count)
    }

    /// The keys of a list with its pending changes applied.
    func visible(_ ids: [EntityKey], _ key: QueryKey) -> [EntityKey] {
        let list = queryOverlays.withLock { $0.isEmpty ? [] : $0[key] ?? [] }
        return list.reduce(into: ids) { $1.apply(&$0) }
    }

    /// Edits the pending changes of a list.
    func edit(_ key: QueryKey, _ change: (inout [QueryOverlay]) -> Void) {
        queryOverlays.withLock { overlays in
            var list = overlays[key] ?? []
            change(&list)
            overlays[key] = list.isEmpty ? nil : list
        }
    }

    /// The pending changes of an entity.
    func pending(_ key: EntityKey) -> [Overlay] {
        guard overlayCount.load(ordering: .relaxed) > 0 else { return [] }
        return overlays.withLock { $0[key] ?? [] }
    }

    /// The chosen entities with pending changes. Cost: O(n) for all n entities with pending changes.
    func pending(where isChosen: (EntityKey) -> Bool) -> [EntityKey: [Overlay]] {
        guard overlayCount.load(ordering: .relaxed) > 0 else { return [:] }
        return overlays.withLock { $0.filter { isChosen($0.key) } }
    }

    /// Edits the pending changes of an entity.
    func edit(_ key: EntityKey, _ change: (inout [Overlay]) -> Void) {
        overlays.withLock { overlays in
            var list = overlays[key] ?? []
            change(&list)
            overlays[key] = list.isEmpty ? nil : list
            overlayCount.store(overlays.count, ordering: .relaxed)
        }
    }

    func removeAllOverlays() {
        overlays.withLock { overlays in
            overlays = [:]
            overlayCount.store(0, ordering: .relaxed)
        }
        queryOverlays.withLock { $0 = [:] }
    }
}

/// A pending local change of an entity. It is shown over the server's value until the server has applied it.
struct Overlay: Sendable {
    /// The operation that the change belongs to.
    let operation: Int64
    /// Applies the change. Nil stays nil unless the change creates the entity.
    let apply: @Sendable ((any Sendable)?) -> (any Sendable)?
}

/// A pending local change of a list.
struct QueryOverlay: Sendable {
    /// The operation that the change belongs to.
    let operation: Int64
    /// Changes the keys of the list.
    let apply: @Sendable (inout [EntityKey]) -> Void
}
