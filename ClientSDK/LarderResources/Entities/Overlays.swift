import LarderStorage
import Synchronization

/// The pending changes over the server's values of entities and lists, which are kept apart from them. Safe from any thread.
final class Overlays: Sendable {
    private let overlays = Mutex<[StoredKey: [Overlay]]>([:])
    private let overlayCount = Atomic<Int>(0)

    /// The value with all pending changes applied, oldest first, and their number.
    func visible(_ value: (any Sendable)?, _ key: EntityKey) -> (value: (any Sendable)?, pending: Int) {
        let list = pending(.entity(key))
        return (list.reduce(value) { $1.change.applied(to: $0) }, list.count)
    }

    /// The keys of a list with its pending changes applied.
    func visible(_ ids: [EntityKey], _ key: QueryKey) -> [EntityKey] {
        pending(.query(key)).reduce(into: ids) { ids, overlay in
            if case .list(let change) = overlay.change { change(&ids) }
        }
    }

    /// The pending changes of an entity or a list.
    func pending(_ key: StoredKey) -> [Overlay] {
        guard overlayCount.load(ordering: .relaxed) > 0 else { return [] }
        return overlays.withLock { $0[key] ?? [] }
    }

    /// The chosen entities with pending changes. Cost: O(n) for all n keys with pending changes.
    func pending(where isChosen: (EntityKey) -> Bool) -> [EntityKey: [Overlay]] {
        guard overlayCount.load(ordering: .relaxed) > 0 else { return [:] }
        return overlays.withLock { overlays in
            overlays.reduce(into: [:]) { if let key = $1.key.entity, isChosen(key) { $0[key] = $1.value } }
        }
    }

    /// Shows a pending change in the order of the operations; usually it is the last.
    func show(_ overlay: Overlay, over key: StoredKey) {
        edit(key) { list in
            let index = list.lastIndex { $0.operation <= overlay.operation }.map { $0 + 1 } ?? 0
            list.insert(overlay, at: index)
        }
    }

    /// Shows the pending change of an operation no longer.
    ///
    /// - Returns: those that were shown. They contain values of the app, and are released without a lock.
    func hide(_ operation: Int64, over key: StoredKey) -> [Overlay] {
        edit(key) { $0.removeAll { $0.operation == operation } }
    }

    @discardableResult private func edit(_ key: StoredKey, _ change: (inout [Overlay]) -> Void) -> [Overlay] {
        overlays.withLock { overlays in
            let before = overlays[key] ?? []
            var list = before
            change(&list)
            overlays[key] = list.isEmpty ? nil : list
            overlayCount.store(overlays.count, ordering: .relaxed)
            return before
        }
    }

    /// Shows none any longer; returns those that were shown, as `hide` does.
    func hideAll() -> [StoredKey: [Overlay]] {
        overlays.withLock { overlays in
            defer { overlays = [:] }
            overlayCount.store(0, ordering: .relaxed)
            return overlays
        }
    }
}

/// A pending local change of an entity or a list. It is shown over the server's value until the server has applied it.
struct Overlay: Sendable {
    enum Change: Sendable {
        /// Changes an entity. Nil stays nil unless the change creates the entity.
        case entity(@Sendable ((any Sendable)?) -> (any Sendable)?)
        /// Changes the keys of a list.
        case list(@Sendable (inout [EntityKey]) -> Void)

        /// An entity after the change.
        func applied(to value: (any Sendable)?) -> (any Sendable)? {
            if case .entity(let change) = self { change(value) } else { value }
        }
    }

    /// The operation that the change belongs to.
    let operation: Int64
    let change: Change
}
