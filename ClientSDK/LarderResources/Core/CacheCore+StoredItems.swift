import LarderStorage

extension CacheCore: StoredItems.Storage {
    func values(
        _ items: [StoredItems.Version],
        _ decode: @escaping @Sendable ([UInt8]) throws -> any Sendable
    ) async -> [String: any Sendable] {
        await reading {
            var values: [String: any Sendable] = [:]
            for item in items {
                guard let stored = self.entity(item.key, decode)?.stored, let version = stored.version,
                    version >= item.version, !stored.isInvalidated, stored.completeness == .complete
                else { continue }
                values[item.key.id] = stored.value
            }
            return values
        }
    }

    func remove(_ items: [StoredItems.Version]) async throws(LarderError) {
        guard !items.isEmpty else { return }
        var update = CacheUpdate()
        for item in items { update.remove(item.key, deletedInVersion: item.version) }
        let removals = update
        try await changing { () async throws(LarderError) in try self.commit(removals) }
    }
}
