import LarderMemory
public import LarderStorage

/// What the cache keeps in memory and on disk, and its end.
extension LarderCache {
    /// Does one bounded step of background maintenance: removes expired rows, returns free pages. Call it until nothing is left.
    ///
    /// - Returns: whether nothing is left to do.
    @discardableResult nonisolated(nonsending) public func maintain() async throws(LarderError) -> Bool {
        let core = core
        return try await core.changing { () async throws(LarderError) in try core.maintain() }
    }

    /// Shrinks the memory tier to at most `bytes`. Observed values stay.
    public func trimMemory(toBytes bytes: Int) {
        let rows = core.disk == nil ? bytes : bytes / CacheCore.listShare
        core.reporting { try core.memoryRows.trim(toCost: max(0, rows)) }
        core.entities.trim(cost: max(0, bytes))
        core.queries.trim(cost: max(0, bytes / CacheCore.listShare))
        core.nodes.trim(toCount: bytes > 0 ? 64 : 0, cost: max(0, bytes / CacheCore.listShare))
        // A request that is just ending still holds its node.
        if bytes <= 0 { for node in core.nodes.all { node.forgetUnobserved() } }
        core.reportEvictions()
    }

    /// The size of the entities, lists, assembled values and rows in memory, in bytes (`CacheConfiguration.memoryBytesMaximum`).
    public var memoryCost: Int {
        // A closed cache has no rows.
        let rows = core.isClosed ? 0 : core.reporting { try core.memoryRows.cost() } ?? 0
        return core.entities.cost + core.queries.cost + core.nodes.cost + rows
    }

    /// The disk tier; nil if the cache is in memory only.
    public var disk: DiskStore? { core.disk }

    /// The store of the outbox, of secrets and of settings, which must not be purged; nil if the cache is in memory only.
    package var outboxDisk: DiskStore? { core.outboxDisk }

    /// Whether `close` or `erase` was called.
    package var isClosed: Bool { core.isClosed }

    /// Closes the cache: requests are cancelled, observations end, later calls throw `.closed`. Stored values stay.
    public func close() {
        outbox.close()
        core.close()
    }

    /// Closes the cache and removes everything that it has stored. Requests in flight cannot restore it.
    ///
    /// - Throws: `.storage` if files could not be removed.
    public func erase() throws(LarderError) {
        close()
        do { try core.disk?.erase() } catch { throw LarderError(error) }
    }

    /// Whether content is stored on disk. False without a store, and while the disk fails.
    public var isDiskTierOn: Bool { core.contentDisk != nil && core.takesChanges }

    /// Turns the disk tier for content off or on, as by a feature flag: for a store that is damaged or too slow on some devices.
    ///
    /// While it is off, values are in memory only and what is on disk is not read. The outbox, sessions and change tokens stay on disk,
    /// so that no pending change is lost. The setting is stored: a cache that opens while it is off reads no content. Turning it on
    /// removes the content on disk, which has missed changes, so that nothing stale is taken for fresh. Cost: a transaction if it
    /// changes.
    ///
    /// - Throws: `.storage`. Then it is off.
    nonisolated(nonsending) public func setDiskTier(isOn: Bool) async throws(LarderError) {
        let core = core
        try await core.changing { () async throws(LarderError) in try core.setDiskTier(isOn: isOn) }
    }
}
