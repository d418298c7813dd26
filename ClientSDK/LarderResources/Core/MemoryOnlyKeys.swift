import LarderStorage
import Synchronization

/// The keys that a reader keeps in memory only: nothing is written under them until the cache is closed. Safe from any thread.
///
/// Bounded, and never less strict than before: beyond 4,096 keys everything is kept in memory only.
final class MemoryOnlyKeys: Sendable {
    private static let countMaximum = 4_096

    /// Whether bytes that were removed may still be in the disk's log.
    let hasRemovedBytes = Atomic<Bool>(false)
    private let hasAny = Atomic<Bool>(false)
    private let keys = Mutex<Set<StoredKey>>([])

    func insert(_ key: StoredKey) {
        keys.withLock { keys in if keys.count <= Self.countMaximum { keys.insert(key) } }
        hasAny.store(true, ordering: .releasing)
    }

    /// Whether there are any.
    var isUsed: Bool { hasAny.load(ordering: .acquiring) }

    func contains(_ key: StoredKey) -> Bool {
        guard hasAny.load(ordering: .acquiring) else { return false }
        return keys.withLock { $0.count > Self.countMaximum || $0.contains(key) }
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
    ///
    /// Its bytes are removed from the log too, unless another connection is reading: then the next call for any key
    /// tries again.
    func keepOffDisk(_ key: StoredKey) throws(LarderError) {
        guard let disk else { return }
        memoryOnly.insert(key)
        var update = CacheUpdate()
        update.steps = [.keepOffDisk(key)]
        let commit = try carryOut(update)
        announce(commit)
        if commit.hasLeftDisk { memoryOnly.hasRemovedBytes.store(true, ordering: .relaxed) }
        guard memoryOnly.hasRemovedBytes.load(ordering: .relaxed) else { return }
        do {
            if try disk.emptyLog() { memoryOnly.hasRemovedBytes.store(false, ordering: .relaxed) }
        } catch {
            throw LarderError(error)
        }
    }
}
