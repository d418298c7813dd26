import LarderMemory
import LarderStorage
import Synchronization

/// Whether content is on the disk. While it is not, content is neither read from the disk nor written to it, and what memory does not
/// have counts as missing. The outbox, change tokens, invalidations and metadata stay on the disk.
enum DiskTier: UInt8, AtomicRepresentable {
    case on
    /// Turned off by the app (`LarderCache.setDiskTier`).
    case off
    /// The disk did not take a change that memory has made, so that the content on it is outdated. The next commit that the disk takes
    /// removes that content and turns the tier on again.
    case failed
}

extension CacheCore {
    /// Its presence in the store means that the app has turned the tier off, and that the content on disk may be outdated.
    private static let diskTierKey = "larder.diskTier.off"

    /// The store for content; nil while the disk tier is off or has failed.
    var contentDisk: DiskStore? { diskTier.load(ordering: .acquiring) == .on ? disk : nil }

    func restoreDiskTier(_ disk: DiskStore) throws {
        guard try disk.metadata(Self.diskTierKey) != nil else { return }
        diskTier.store(.off, ordering: .releasing)
    }

    /// Turns the disk tier off or on. When it is turned on, the content on disk is removed first, because it does not have the changes
    /// that came meanwhile.
    ///
    /// - Throws: `.storage`. Then it is not on.
    func setDiskTier(isOn: Bool) throws(LarderError) {
        owner.requireOutside("LarderCache.setDiskTier")
        guard let disk else { return }
        do {
            try commits.withLock { _ in
                guard diskTier.load(ordering: .relaxed) != (isOn ? .on : .off) else { return }
                // Off also if that cannot be stored: then the switch itself is set again at the next start.
                if !isOn { diskTier.store(.off, ordering: .releasing) }
                // A read that is under way does not fill memory.
                memory.withLock { $0 += 1 }
                try disk.write { transaction in
                    if isOn { try removeContent(in: transaction) }
                    try transaction.setMetadata(isOn ? nil : [1], for: Self.diskTierKey)
                }
                guard isOn else { return }
                diskTier.store(.on, ordering: .releasing)
                // What was fetched meanwhile has no row that a commit of another process would make outdated.
                entities.trim(toCost: 0)
                queries.removeAll()
            }
            if isOn { for node in nodes.all { node.forget() } }
            entityObservers.tell { _ in true }
        } catch {
            throw LarderError(error)
        }
    }

    // MARK: A disk that fails

    /// Stops using the content on the disk, because memory is about to have a change that it does not have.
    func noteDiskFailure() {
        mayLackRows.store(true, ordering: .relaxed)
        _ = diskTier.compareExchange(expected: .on, desired: .failed, ordering: .acquiringAndReleasing)
    }

    /// Whether the next transaction has to remove the content on the disk, because the disk has failed and takes writes again.
    ///
    /// - Throws: what the disk throws if it still fails.
    func probeFailedDisk(_ disk: DiskStore) throws -> Bool {
        guard diskTier.load(ordering: .relaxed) == .failed else { return false }
        // A small write, so that removing much content is not tried in vain.
        try disk.write { transaction in
            try transaction.setMetadata(Self.encode(clocks.highWater), for: Self.clockKey)
        }
        return true
    }

    /// Removes the content on the disk, which has missed changes, and stores what memory knows about the content that follows.
    func removeContent(in transaction: borrowing DiskStore.WriteTransaction) throws {
        try transaction.removeAllItems()
        if invalidations.hasMarks { try storeMarks(in: transaction) }
    }

    /// Uses the disk again. Values in memory stay, and get rows when they change or are asked for again.
    func noteDiskRecovery() {
        // A key that is kept off the disk may have had a row until now.
        memoryOnly.hasRemovedBytes.store(true, ordering: .relaxed)
        diskTier.store(.on, ordering: .releasing)
    }

    /// Whether a value that "not modified" confirms has a row, if it should have one.
    func hasRow(_ key: StoredKey) -> Bool {
        guard mayLackRows.load(ordering: .relaxed), let disk = contentDisk, !memoryOnly.contains(key) else {
            return true
        }
        do {
            return switch key {
            case .entity(let key): try entities[key]?.isMemoryOnly ?? false || disk.entity(key) != nil
            case .query(let key): try knownQuery(key)?.isMemoryOnly ?? false || disk.list(key) != nil
            }
        } catch {
            configuration.onEvent(.storageFailed(LarderError(error)))
            return true
        }
    }
}

extension Commit {
    /// Applies the steps within a transaction. While the app has turned the disk tier off, only what is no content is written.
    mutating func perform(_ steps: [CacheUpdate.Step], in transaction: borrowing DiskStore.WriteTransaction) throws {
        let disk = DiskPart(connection: transaction.connection)
        guard core.diskTier.load(ordering: .acquiring) == .off else { return try perform(steps, disk) }
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
