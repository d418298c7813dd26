import LarderStorage
import Synchronization

/// A timeline engine without its type of item.
protocol AnyTimelineEngine: AnyObject, Sendable {
    func close()
}

/// The timeline engines of a cache: one for each key and type of item that has a reader. Safe from any thread.
final class TimelineRegistry: Sendable {
    struct Name: Hashable, Sendable {
        let key: QueryKey
        let type: ObjectIdentifier
    }

    private struct Entry {
        weak var engine: (any AnyTimelineEngine)?
    }

    private let core: CacheCore
    private let entries = Mutex<[Name: Entry]>([:])

    init(_ core: CacheCore) { self.core = core }

    /// The number of engines that are known.
    var count: Int { entries.withLock { $0.count } }

    func engine<Item: CacheEntity>(of resource: PagedResource<Item>) -> TimelineEngine<Item> {
        let name = Name(key: resource.key, type: ObjectIdentifier(Item.self))
        if let known = entries.withLock({ $0[name]?.engine }) as? TimelineEngine<Item> { return known }
        // Created outside of the lock: it may release another engine, which then removes itself from the registry.
        let new = TimelineEngine(resource, core, self, name)
        let engine = entries.withLock { entries -> TimelineEngine<Item> in
            if let known = entries[name]?.engine as? TimelineEngine<Item> { return known }
            entries[name] = Entry(engine: new)
            return new
        }
        if core.isClosed { engine.close() }
        return engine
    }

    /// Removes the entry of a released engine.
    func forget(_ name: Name) {
        // Released outside of the lock: this may be the last reference to the engine.
        let successor = entries.withLock { entries in
            let successor = entries[name]?.engine
            if successor == nil { entries[name] = nil }
            return successor
        }
        withExtendedLifetime(successor) {}
    }

    /// Ends all engines, after the core was closed.
    func close() {
        let engines = entries.withLock { entries in
            defer { entries = [:] }
            return entries.values.compactMap(\.engine)
        }
        for engine in engines { engine.close() }
    }
}
