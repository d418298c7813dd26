import LarderStorage
import Synchronization

/// A set of keys. Bounded: beyond its maximum it contains every key. Safe from any thread.
final class KeySet: Sendable {
    private let countMaximum: Int
    private let keys = Mutex<Set<StoredKey>>([])

    init(countMaximum: Int) { self.countMaximum = countMaximum }

    func insert(_ key: StoredKey) {
        keys.withLock { keys in if keys.count <= countMaximum { keys.insert(key) } }
    }

    var isEmpty: Bool { keys.withLock { $0.isEmpty } }

    func contains(_ key: StoredKey) -> Bool { keys.withLock { $0.count > countMaximum || $0.contains(key) } }
}

extension Commit {
    /// Moves what is on the disk under a key to memory: of a list also those of its entities that no other list on the disk contains.
    mutating func keepOffDisk(_ key: StoredKey, _ rows: Rows) throws {
        guard let leaving = try rows.moveToMemory(key) else { return }
        hasLeftDisk = true
        forget(key)
        for entity in leaving { try keepOffDisk(.entity(entity), rows) }
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
