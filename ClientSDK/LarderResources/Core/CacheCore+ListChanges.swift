import LarderStorage
import Synchronization

extension CacheCore {
    /// The entities of a type that may be in another place of a declared list than its index says.
    func changes(since list: DiskQuery, ofType type: String) -> ListChanges {
        var keys: Set<EntityKey> = []
        var areLost = false
        do {
            for store in [memoryRows.used, contentDisk].compactMap(\.self) {
                let found = try store.read { try $0.changes(ofType: type, since: list.asked, except: list.answered) }
                keys.formUnion(found.ids.map { EntityKey(type: type, id: $0) })
                areLost = areLost || found.areLost
            }
        } catch {
            // The list is stale until they can be read.
            areLost = true
            configuration.onEvent(.storageFailed(LarderError(error)))
        }
        return ListChanges(
            recorded: keys,
            pending: Set(entities.pendingKeys { $0.type == type }),
            areLost: areLost,
            part: ListChanges.part(ofType: type)
        )
    }
}
