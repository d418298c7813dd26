import LarderCoding
import LarderHTTP
package import LarderStorage
package import LarderTime

/// Stores responses in a `DiskStore`: for each URL a list of its variants' entries, and their contents separately.
///
/// Updating fields after a 304 does not rewrite the content. The store's budget applies; the least recently read responses are evicted first. Several processes may share one store.
///
/// A row is named by a digest of the URL, which is not stored itself. A reader of the file can still check a URL or a content that he
/// guesses, because digests have no key.
package final class DiskHTTPCacheStorage: HTTPCacheStorage {
    package let store: DiskStore
    /// Whether calls may wait for the disk; see `DiskStore.Configuration`.
    package var mayBlock: Bool { store.configuration.mayBlock }
    private let policy: HTTPCache.Policy
    private let boot: StampSource
    private static let query = "http"
    private static let type = "http.body"

    /// - Parameters:
    ///   - store: the store, which may contain other data.
    ///   - policy: the policy of the cache. The store's `staleRetention` begins when a response is stale by it.
    ///   - boot: keeps ages right when the store's clock is set, until the machine is booted.
    package init(_ store: DiskStore, policy: HTTPCache.Policy = HTTPCache.Policy(), boot: StampSource = .system) {
        self.store = store
        self.policy = policy
        self.boot = boot
    }

    /// Stores responses in memory.
    ///
    /// - Parameter bytesMaximum: the budget; 0 or less stores nothing.
    package convenience init(inMemory bytesMaximum: Int, clock: any WallClock = SystemWallClock()) {
        var settings = DiskStore.Configuration.inMemory(bytesMaximum: Int64(max(0, bytesMaximum)), clock: clock)
        settings.mayBlock = false
        do throws(DiskError) { self.init(try DiskStore(settings)) } catch {
            preconditionFailure("A store in memory is opened by its first use: \(error)")
        }
    }

    package func entries(for key: String) throws -> [HTTPCacheEntry] {
        guard let list = try store.query(queryKey(key)) else { return [] }
        return entries(in: list)
    }

    /// Returns the content of an entry.
    package func body(of entry: HTTPCacheEntry, for key: String) throws -> [UInt8]? {
        try store.entity(bodyKey(entry.bodyID, key))?.payload
    }

    /// Updates the entries of a key in one transaction.
    package func update(_ key: String, body: [UInt8]?, _ change: @Sendable (inout [HTTPCacheEntry]) -> Void) throws {
        let queryKey = queryKey(key)
        try store.write { transaction in
            let list = try transaction.query(queryKey)
            let old = list.map { self.entries(in: $0) } ?? []
            var entries = old
            change(&entries)
            guard entries != old || body != nil else { return }
            do { try replace(list, by: entries, body, key, transaction) } catch let error as DiskError
                where error.code == .tooLarge
            {
                // A response beyond the budget is not stored, and what it replaces is outdated.
                let left = body.map { body in
                    let newID = HTTPCacheEntry.bodyID(for: body)
                    return entries.filter { $0.bodyID != newID }
                }
                try replace(list, by: left ?? [], nil, key, transaction)
            }
        }
    }

    private func replace(
        _ list: DiskQuery?,
        by entries: [HTTPCacheEntry],
        _ body: [UInt8]?,
        _ key: String,
        _ transaction: DiskConnection
    ) throws {
        let named = Set(entries.map { bodyKey($0.bodyID, key) })
        for id in list?.ids ?? [] where !named.contains(id) { try transaction.remove(.entity(id)) }
        guard !entries.isEmpty else { return try transaction.remove(.query(queryKey(key))) }
        try put(entries, body, key, transaction)
    }

    private func put(
        _ entries: [HTTPCacheEntry],
        _ body: [UInt8]?,
        _ key: String,
        _ transaction: DiskConnection
    ) throws {
        let newest = entries.map(\.receivedAt).max() ?? WallTime(seconds: 0)
        let outdated =
            entries.map { $0.receivedAt + ResponseTerms($0, policy: policy).lifetime }.max() ?? newest
        let times = RowTimes(fetchedAt: newest, expiresAt: outdated)
        let newID = body.map { HTTPCacheEntry.bodyID(for: $0) }
        let ids = Set(entries.map(\.bodyID)).sorted()
        for id in ids {
            if id == newID, let body {
                try transaction.put(DiskEntity(bodyKey(id, key), payload: body, times))
            } else {
                try transaction.touch(.entity(bodyKey(id, key)), times)
            }
        }
        let members = ListMembers(ids.map { bodyKey($0, key) })
        var list = DiskQuery(queryKey(key), members, isComplete: true, times: times)
        list.details = HTTPCacheEntry.encode(entries, clock)
        try transaction.put(list)
    }

    /// Removes all responses of this cache from the store.
    package func removeAll() throws {
        try store.write { transaction in
            for key in try transaction.queryKeys(named: Self.query) { try transaction.remove(.query(key)) }
            try transaction.removeEntities(ofType: Self.type)
        }
    }

    private func queryKey(_ key: String) -> QueryKey {
        QueryKey(Self.query, [QueryKey.Parameter("digest", hexEncode(SHA256.hash(Array(key.utf8))))])
    }

    /// An entry of another format version is a miss and is replaced by the next response.
    private func entries(in list: DiskQuery) -> [HTTPCacheEntry] {
        HTTPCacheEntry.decode(list.details, clock) ?? []
    }

    private var clock: ClockOffset? { ClockOffset(of: store.configuration.clock, boot) }

    private func bodyKey(_ id: String, _ key: String) -> EntityKey {
        EntityKey(type: Self.type, id: "\(hexEncode(SHA256.hash(Array(key.utf8))).prefix(32)).\(id)")
    }
}
