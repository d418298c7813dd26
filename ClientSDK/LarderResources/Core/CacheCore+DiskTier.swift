import LarderEvents
import LarderMemory
import LarderStorage
import Synchronization

/// Whether content is on the disk. While the app has turned the tier off, content is neither read from the disk nor written to it. The
/// outbox, change tokens, invalidations and metadata stay on the disk.
extension CacheCore {
    /// Its presence in the store means that the app has turned the tier off, and that the content on disk may be outdated.
    static let diskTierKey = "larder.diskTier.off"

    /// The store for content; nil while the disk tier is off.
    var contentDisk: DiskStore? {
        isDiskTierOff.load(ordering: .acquiring) || hidden.withLock { $0.isAll } ? nil : disk
    }

    /// Turns the disk tier off or on. When it is turned on, the content on disk is removed first, because it does not have the changes
    /// that came meanwhile.
    ///
    /// - Throws: `.storage`. Then it is not on.
    func setDiskTier(isOn: Bool) throws(LarderError) {
        commits.requireOutside("LarderCache.setDiskTier")
        guard let disk else { return }
        defer { delayed.deliver() }
        do {
            try commits.withLock { _ in
                guard isDiskTierOff.load(ordering: .relaxed) == isOn else { return }
                // Off also if that cannot be stored: then the switch itself is set again at the next start.
                if !isOn { isDiskTierOff.store(true, ordering: .releasing) }
                // A read that is under way does not fill memory.
                memory.withLock { $0 += 1 }
                try disk.write { transaction in
                    if isOn {
                        try transaction.removeAllItems()
                        if invalidations.hasMarks { try storeMarks(in: transaction) }
                    }
                    try transaction.setMetadata(isOn ? nil : [1], for: Self.diskTierKey)
                }
                guard isOn else { return }
                try memoryRows.removeAll()
                memory.withLock { $0 += 1 }
                hidden.withLock { $0 = HiddenRows() }
                lacksChanges.store(false, ordering: .relaxed)
                isDiskTierOff.store(false, ordering: .releasing)
                // What was fetched meanwhile has no row that a commit of another process would make outdated.
                entities.trim(cost: 0)
                queries.removeAll()
            }
            reportEvictions()
            if isOn { for node in nodes.all { node.forget() } }
            entityObservers.tell { _ in true }
        } catch {
            throw LarderError(error)
        }
    }
}
