extension LarderCache {
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
