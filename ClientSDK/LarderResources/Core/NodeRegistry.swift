import LarderMemory
import LarderStorage
import Synchronization

/// A node without its type of value.
protocol AnyNode: AnyObject, Sendable {
    var key: QueryKey { get }
    /// Its number among the nodes of the cache. The cache tells nodes of a change in this order, which does not depend on addresses.
    var number: UInt64 { get }
    /// Its cost against the memory limit, in bytes: that of its assembled value, as if nothing else had the parts in memory.
    var cost: Int { get }
    /// A part has changed, or its freshness may have.
    func contentChanged()
    /// Drops its content, and returns it; `show` follows. May be called while memory is locked.
    @discardableResult func forget() -> (any Sendable)?
    /// Drops its content if nobody observes it.
    func forgetUnobserved()
    /// Shows observers the current content.
    func show()
    /// What was confirmed before has no known age.
    func clockWasSetBack()
    func networkReturned()
    func close()
    /// The key of the row that holds its value.
    var storedKey: StoredKey { get }
    /// Its state for an inspector. May read the disk.
    func held(textMaximum: Int) -> HeldValue
    /// Asks the source, whatever is stored.
    func refreshHeld() async throws(LarderError)
}

private struct Weak {
    weak var node: (any AnyNode)?
}

/// The nodes: one for each key, type of value and kind of shape. Recently used nodes are kept, as many as the limits allow; nodes that
/// are in use are never duplicated.
///
/// Safe from any thread.
final class NodeRegistry: Sendable {
    struct Name: Hashable, Sendable {
        let key: QueryKey
        let type: ObjectIdentifier
        let kind: ShapeKind

        init<Value>(_ resource: Resource<Value>) {
            key = resource.key
            type = ObjectIdentifier(Value.self)
            kind = resource.kind
        }
    }

    private let recent: MemoryTier<Name, any AnyNode>
    private let live = Mutex<[Name: Weak]>([:])
    private let lastNumber = Atomic<UInt64>(0)

    private let costMaximum: Int

    init(countMaximum: Int, costMaximum: Int) {
        self.costMaximum = costMaximum
        recent = MemoryTier(limits: .init(count: countMaximum, cost: costMaximum))
    }

    /// The sum of the costs of the recently used nodes, in bytes.
    var cost: Int { recent.cost }

    func nextNumber() -> UInt64 { lastNumber.add(1, ordering: .relaxed).newValue }

    func node<Value>(of resource: Resource<Value>, in core: CacheCore) -> Node<Value> {
        let name = Name(resource)
        if let known = recent[name] { return cast(known) }
        let node: any AnyNode = live.withLock { live in
            if let node = live[name]?.node { return node }
            let node = Node(resource, core)
            live[name] = Weak(node: node)
            return node
        }
        keep(node, name)
        if core.isClosed { node.close() }
        return cast(node)
    }

    /// Keeps a node among the recently used ones, with its present cost. One that exceeds the limit takes the place of all others.
    func keep(_ node: any AnyNode, _ name: Name) { recent.store(node, for: name, cost: min(node.cost, costMaximum)) }

    /// A name contains the type, so the node under it has that type.
    private func cast<Value>(_ node: any AnyNode) -> Node<Value> { unsafe unsafeDowncast(node, to: Node<Value>.self) }

    /// All existing nodes, oldest first.
    var all: [any AnyNode] {
        live.withLock { live in live.values.compactMap(\.node) }.sorted { $0.number < $1.number }
    }

    /// A node has gone.
    func forget(_ name: Name) {
        // Released outside of the lock: it may be the last reference to a newer node.
        let successor = live.withLock { live in
            let successor = live[name]?.node
            if successor == nil { live[name] = nil }
            return successor
        }
        withExtendedLifetime(successor) {}
    }

    func trim(toCount count: Int, cost: Int) { recent.trim(toCount: count, cost: cost) }

    func removeAll() { recent.removeAll() }
}

/// Maps keys to the nodes that depend on them. Safe from any thread.
final class DependencyIndex: Sendable {
    private let index = Mutex<[StoredKey: [ObjectIdentifier: Weak]]>([:])

    /// Replaces the parts of a node.
    func replace(_ old: Set<StoredKey>, by new: Set<StoredKey>, for node: any AnyNode) {
        guard old != new else { return }
        let id = ObjectIdentifier(node)
        index.withLock { index in
            for key in old where !new.contains(key) { Self.remove(id, key, &index) }
            for key in new where !old.contains(key) { index[key, default: [:]][id] = Weak(node: node) }
        }
    }

    /// A node has gone.
    func remove(_ id: ObjectIdentifier, _ keys: Set<StoredKey>) {
        index.withLock { index in for key in keys { Self.remove(id, key, &index) } }
    }

    private static func remove(
        _ id: ObjectIdentifier,
        _ key: StoredKey,
        _ index: inout [StoredKey: [ObjectIdentifier: Weak]]
    ) {
        index[key]?[id] = nil
        if index[key]?.isEmpty ?? false { index[key] = nil }
    }

    /// The nodes that depend on any of the keys.
    func nodes(madeOf keys: Set<StoredKey>) -> [any AnyNode] {
        index.withLock { index in
            var found: [ObjectIdentifier: any AnyNode] = [:]
            for key in keys { for (id, weak) in index[key] ?? [:] { found[id] = weak.node } }
            return found.values.sorted { $0.number < $1.number }
        }
    }
}
