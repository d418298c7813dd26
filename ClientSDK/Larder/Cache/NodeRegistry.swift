import Synchronization

/// What a node tells the rest of the cache, whatever its value is.
protocol AnyNode: AnyObject, Sendable {
    var key: QueryKey { get }
    /// These of the things that it is made of are others from now on; `contentChanged` follows. Called while memory is locked.
    func note(changed keys: [StoredKey])
    /// Something that it is made of has changed.
    func contentChanged()
    /// It was declared stale, or what vouches for it has changed.
    func standingChanged()
    /// All that it is made of may be something else: whoever reads it next finds that out. `show` follows.
    func forget()
    /// Shows those who observe what there is after that.
    func show()
    /// The time that it was waiting for has come.
    func timeCame()
    /// The network can be asked again.
    func networkReturned()
    /// Everything ends.
    func close()
}

/// The nodes: one for each key, type of value and kind of shape. Those that were used lately stay, and those that somebody holds cannot be lost.
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

    private struct Weak {
        weak var node: (any AnyNode)?
    }

    private let recent: MemoryTier<Name, any AnyNode>
    private let live = Mutex<[Name: Weak]>([:])

    init(countMaximum: Int) { recent = MemoryTier(limits: .init(count: countMaximum)) }

    /// The node of a resource.
    func node<Value>(of resource: Resource<Value>, in core: CacheCore) -> Node<Value> {
        let name = Name(resource)
        if let known = recent[name] { return cast(known) }
        let node: any AnyNode = live.withLock { live in
            if let node = live[name]?.node { return node }
            let node = Node(resource, core)
            live[name] = Weak(node: node)
            return node
        }
        recent.store(node, for: name)
        if core.isClosed { node.close() }
        return cast(node)
    }

    /// Under a name with a type there is only ever a node of that type.
    private func cast<Value>(_ node: any AnyNode) -> Node<Value> { unsafe unsafeDowncast(node, to: Node<Value>.self) }

    /// Those that exist.
    var all: [any AnyNode] { live.withLock { live in live.values.compactMap(\.node) } }

    /// A node has gone.
    func forget(_ name: Name) {
        // Released outside of the lock: it may be the last reference to a node that has come since.
        let successor = live.withLock { live in
            let successor = live[name]?.node
            if successor == nil { live[name] = nil }
            return successor
        }
        withExtendedLifetime(successor) {}
    }

    func trim(toCount count: Int) { recent.trim(toCount: count) }

    func removeAll() { recent.removeAll() }
}

/// Which nodes are made of what. Safe from any thread.
final class DependencyIndex: Sendable {
    private struct Weak {
        weak var node: (any AnyNode)?
    }

    private let index = Mutex<[StoredKey: [ObjectIdentifier: Weak]]>([:])

    /// Notes what a node is made of, instead of what it was made of.
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

    /// The nodes that are made of any of these, each with those that it is made of.
    func nodes(madeOf keys: Set<StoredKey>) -> [Affected] {
        index.withLock { index in
            var found: [ObjectIdentifier: Affected] = [:]
            for key in keys {
                for (id, weak) in index[key] ?? [:] {
                    guard let node = weak.node else { continue }
                    found[id, default: Affected(node: node, keys: [])].keys.append(key)
                }
            }
            return Array(found.values)
        }
    }

    /// A node, and what of it has changed.
    struct Affected: Sendable {
        let node: any AnyNode
        var keys: [StoredKey]
    }
}
