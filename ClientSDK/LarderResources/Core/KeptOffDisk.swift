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

    func contains(_ key: StoredKey) -> Bool { keys.withLock { $0.count > countMaximum || $0.contains(key) } }
}

extension Commit {
    /// Moves what is on the disk under a key to memory: of a list also those of its entities that no other list on the disk contains.
    mutating func keepOffDisk(_ key: StoredKey, _ rows: Rows) throws {
        // What the disk has while it is off counts no longer.
        if try rows.removeWhileOff() { hasLeftDisk = true }
        guard let row = try rows.place(of: key), !row.isOffDisk, !row.place.isRemoval else { return }
        hasLeftDisk = true
        switch key {
        case .entity(let name): try rows.moveToMemory(name, row.place)
        case .query(let name):
            guard let stored = try current(name, rows) else { return }
            queries[name] = .set(stored)
            try write(name, isOffDisk: true, rows)
            for member in stored.query.members.keys {
                let lists = try rows.queries(with: member)
                if try lists.allSatisfy({ try rows.place(of: .query($0))?.isOffDisk ?? true }) {
                    try keepOffDisk(.entity(member), rows)
                }
            }
        }
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
        if reporting({ try disk.emptyLog() }) ?? false { hasRemovedBytes.store(false, ordering: .relaxed) }
    }
}
