import LarderCoding
import LarderHTTP
import LarderTime

/// Responses in a disk store: for each URL a list that holds what is known of its variants, and their contents beside it.
///
/// Contents above the store's `blobThreshold` are files. Renewing a response's fields after a 304 rewrites no content. The
/// store's budget bounds it; what is read least leaves first. Several processes may use one store.
public final class DiskHTTPCacheStorage: HTTPCacheStorage {
    private let store: DiskStore
    private let policy: HTTPCachePolicy
    private let query: String
    private let type: String

    /// - Parameters:
    ///   - store: where to keep responses. It may hold other things too.
    ///   - name: tells several caches in one store apart.
    ///   - policy: the one of the cache; it says when things are outdated, from when the store counts its `staleRetention`.
    public init(_ store: DiskStore, name: String = "http", policy: HTTPCachePolicy = HTTPCachePolicy()) {
        self.store = store
        self.policy = policy
        query = name
        type = "\(name).body"
    }

    /// What is stored under a key.
    public func entries(for key: String) throws -> [HTTPCacheEntry] {
        guard let list = try store.query(queryKey(key)) else { return [] }
        // What another version wrote is a miss; the next response takes its place.
        return HTTPCacheEntry.decode(list.details) ?? []
    }

    /// The content of an entry.
    public func body(of entry: HTTPCacheEntry, for key: String) throws -> [UInt8]? {
        try store.entity(bodyKey(entry.bodyID, key))?.payload
    }

    /// Changes what is stored under a key, in one transaction.
    public func update(_ key: String, body: [UInt8]?, _ change: @Sendable (inout [HTTPCacheEntry]) -> Void) throws {
        let queryKey = queryKey(key)
        try store.write { transaction in
            let list = try transaction.read { try $0.query(queryKey) }
            let old = list.flatMap { HTTPCacheEntry.decode($0.details) } ?? []
            var entries = old
            change(&entries)
            guard entries != old || body != nil else { return }
            let named = Set(entries.map { bodyKey($0.bodyID, key) })
            for id in list?.ids ?? [] where !named.contains(id) { try transaction.remove(id) }
            guard !entries.isEmpty else { return try transaction.remove(queryKey) }
            try put(entries, body, key, transaction)
        }
    }

    private func put(
        _ entries: [HTTPCacheEntry],
        _ body: [UInt8]?,
        _ key: String,
        _ transaction: borrowing DiskStore.WriteTransaction
    ) throws {
        let newest = entries.map(\.receivedAt).max() ?? WallTime(seconds: 0)
        let outdated =
            entries.map { entry in
                entry.receivedAt + HTTPCacheFreshness(entry, now: entry.receivedAt, policy: policy).lifetime
            }.max() ?? newest
        let newID = body.map { HTTPCacheEntry.bodyID(for: $0) }
        for id in Set(entries.map(\.bodyID)) {
            if id == newID, let body {
                let entity = DiskEntity(bodyKey(id, key), payload: body, fetchedAt: newest, expiresAt: outdated)
                try transaction.put(entity)
            } else {
                try transaction.touch(bodyKey(id, key), validatedAt: newest, expiresAt: outdated)
            }
        }
        try transaction.put(
            DiskQuery(
                queryKey(key),
                ids: Set(entries.map(\.bodyID)).sorted().map { bodyKey($0, key) },
                isComplete: true,
                fetchedAt: newest,
                expiresAt: outdated,
                details: HTTPCacheEntry.encode(entries)
            )
        )
    }

    /// The keys under which something is stored.
    public func keys() throws -> [String] {
        try store.read { transaction in
            try transaction.queryKeys(named: query).compactMap { $0.parameters.first?.value }
        }
    }

    /// Removes all responses, and nothing else of the store.
    public func removeAll() throws {
        try store.write { transaction in
            for key in try transaction.read({ try $0.queryKeys(named: query) }) { try transaction.remove(key) }
            try transaction.removeEntities(ofType: type)
        }
    }

    private func queryKey(_ key: String) -> QueryKey { QueryKey(query, [QueryKey.Parameter("url", key)]) }

    private func bodyKey(_ id: String, _ key: String) -> EntityKey {
        EntityKey(type: type, id: "\(hexEncode(SHA256.hash(Array(key.utf8))).prefix(32)).\(id)")
    }
}
