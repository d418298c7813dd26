import LarderMemory
import LarderStorage
import Synchronization

/// The switch of the disk tier. While it is off, content is neither read from the disk nor written to it. The outbox, change tokens,
/// invalidations and metadata stay on the disk.
extension CacheCore {
    /// Its presence in the store means that the content on disk may be outdated.
    private static let diskTierKey = "larder.diskTier.off"

    /// The store for content; nil while the disk tier is off.
    var contentDisk: DiskStore? { isDiskTierOn.load(ordering: .acquiring) ? disk : nil }

    func restoreDiskTier(_ disk: DiskStore) throws {
        guard try disk.metadata(Self.diskTierKey) != nil else { return }
        isDiskTierOn.store(false, ordering: .releasing)
    }

    /// Turns the disk tier off or on. When it is turned on, the content on disk is removed first, because it does not have the changes
    /// that came meanwhile.
    ///
    /// - Throws: `.storage`. Then it is off.
    func setDiskTier(isOn: Bool) throws(LarderError) {
        owner.requireOutside("LarderCache.setDiskTier")
        guard let disk else { return }
        do {
            try commits.withLock { _ in
                guard isDiskTierOn.load(ordering: .relaxed) != isOn else { return }
                // Off also if that cannot be stored: then the switch itself is set again at the next start.
                isDiskTierOn.store(false, ordering: .releasing)
                // A read that is under way does not fill memory.
                memory.withLock { $0 += 1 }
                try disk.write { transaction in
                    if isOn { try transaction.removeAllItems() }
                    try transaction.setMetadata(isOn ? nil : [1], for: Self.diskTierKey)
                }
                isDiskTierOn.store(isOn, ordering: .releasing)
                // What was fetched meanwhile has no row that a commit of another process would make outdated.
                if isOn {
                    unwritten.removeAll()
                    entities.trim(toCost: 0)
                    queries.removeAll()
                }
            }
            if isOn { for node in nodes.all { node.forget() } }
        } catch {
            throw LarderError(error)
        }
    }
}

extension Commit {
    /// Applies the steps within a transaction. While the disk tier is off, only what is no content is written.
    mutating func perform(_ steps: [CacheUpdate.Step], in transaction: borrowing DiskStore.WriteTransaction) throws {
        let disk = DiskPart(connection: transaction.connection)
        guard !core.isDiskTierOn.load(ordering: .acquiring) else { return try perform(steps, disk) }
        isMemoryOnly = true
        seenCommits = StoredEntity.memoryOnly
        for step in steps {
            switch step {
            case .token, .metadata, .keepOffDisk: try perform([step], disk)
            case .remove(let key, _):
                // Removed for good, and not only until the disk tier is on again.
                try transaction.removeValue(key)
                try perform([step], DiskPart(connection: nil))
            case .removeQuery(let key):
                try transaction.remove(key)
                try transaction.remove(EntityKey(wholeValueOf: key))
                try perform([step], DiskPart(connection: nil))
            default: try perform([step], DiskPart(connection: nil))
            }
        }
    }
}
