import LarderStorage
import Synchronization

/// The rows in memory: of what may not be on the disk, of what the disk did not take, and of all content without a disk.
///
/// Safe from any thread. It knows which keys may have a row, so that a read of another one neither looks here nor waits for a commit. Bounded:
/// beyond 16,384 keys each may have one.
final class MemoryRows: Sendable {
    let store: DiskStore
    /// Whether the cache has no other store.
    private let isOnly: Bool
    private let hasAny = Atomic<Bool>(false)
    private let keys = KeySet(countMaximum: 16_384)

    init(_ store: DiskStore, isOnly: Bool) { (self.store, self.isOnly) = (store, isOnly) }

    /// The store, if it has rows.
    var used: DiskStore? { hasAny.load(ordering: .acquiring) ? store : nil }

    /// The store, if it may have a row of a key, or a deletion.
    func used(for key: StoredKey) -> DiskStore? { mayHave(key) ? store : nil }

    func mayHave(_ key: StoredKey) -> Bool {
        guard hasAny.load(ordering: .acquiring) else { return false }
        return isOnly || keys.contains(key)
    }

    /// Notes that a row is about to be stored.
    func note(_ key: StoredKey) {
        if !isOnly { keys.insert(key) }
        hasAny.store(true, ordering: .releasing)
    }

    /// The size of the rows in bytes, as the limit of the store counts them.
    func cost() throws(DiskError) -> Int {
        try used.map { used throws(DiskError) in Int(try used.statistics().bytes) } ?? 0
    }

    /// Removes the least recently read rows beyond a size, and gives their memory back.
    func trim(toCost cost: Int) throws(DiskError) { try used?.evict(toBytes: Int64(cost)) }

    func removeAll() throws(DiskError) { try used?.removeAllItems() }

    /// Ends the store.
    func close() throws(DiskError) {
        hasAny.store(false, ordering: .releasing)
        try store.erase()
    }
}
