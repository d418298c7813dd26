import LarderStorage
import Synchronization

/// A set of keys. Bounded: beyond its maximum it contains every key. Safe from any thread.
final class KeySet: Sendable {
    private let countMaximum: Int
    private let hasAny = Atomic<Bool>(false)
    private let keys = Mutex<Set<StoredKey>>([])

    init(countMaximum: Int) { self.countMaximum = countMaximum }

    func insert(_ key: StoredKey) {
        keys.withLock { keys in if keys.count <= countMaximum { keys.insert(key) } }
        hasAny.store(true, ordering: .releasing)
    }

    var isEmpty: Bool { !hasAny.load(ordering: .acquiring) }

    func contains(_ key: StoredKey) -> Bool {
        !isEmpty && keys.withLock { $0.count > countMaximum || $0.contains(key) }
    }
}

extension Commit {
    /// Moves a value to memory, if it is on the disk.
    mutating func keepOffDisk(_ key: EntityKey, _ rows: Rows) throws {
        guard try rows.moveToMemory(key) else { return }
        hasLeftDisk = true
        entities[key] = .elsewhere
    }

    /// Moves a list to memory, with those of its entities that no other list on the disk contains.
    mutating func keepOffDisk(_ key: QueryKey, _ rows: Rows) throws {
        guard let leaving = try rows.moveToMemory(key) else { return }
        hasLeftDisk = true
        for entity in leaving { try keepOffDisk(entity, rows) }
        queries[key] = .elsewhere
    }
}

extension CacheCore {
    /// Removes a value from the disk, and keeps it off the disk from now on. In memory it stays.
    func keepOffDisk(_ key: StoredKey) throws(LarderError) {
        guard disk != nil else { return }
        var update = CacheUpdate()
        update.steps = [.keepOffDisk(key, isFinal: true)]
        try commit(update)
    }

    /// Removes the bytes of what has left the disk from its log too, unless another connection is reading: then the next commit tries again.
    func removeBytes(after commit: Commit) {
        if commit.hasLeftDisk { hasRemovedBytes.store(true, ordering: .relaxed) }
        guard hasRemovedBytes.load(ordering: .relaxed), takesChanges, let disk else { return }
        do {
            if try disk.emptyLog() { hasRemovedBytes.store(false, ordering: .relaxed) }
        } catch {
            configuration.onEvent(.storageFailed(LarderError(error)))
        }
    }
}
