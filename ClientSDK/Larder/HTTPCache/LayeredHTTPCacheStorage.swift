import Synchronization

/// A fast storage before a lasting one: reads take what the first has, changes go to both.
///
/// For each key the first has everything that the second has, or nothing. With several processes on the lasting storage, each
/// sees what the others stored when its own first has lost its copy.
public final class LayeredHTTPCacheStorage: HTTPCacheStorage {
    private let first: any HTTPCacheStorage
    private let second: any HTTPCacheStorage
    /// Held while both are changed: otherwise the first could be left with what another change has just replaced in the second,
    /// and show as fresh what was declared invalid.
    private let changing = Mutex(())

    /// - Parameters:
    ///   - first: the fast one, which may hold less.
    ///   - second: the lasting one.
    public init(_ first: any HTTPCacheStorage, over second: any HTTPCacheStorage) {
        self.first = first
        self.second = second
    }

    /// What is stored under a key.
    public func entries(for key: String) throws -> [HTTPCacheEntry] {
        let known = try first.entries(for: key)
        return try known.isEmpty ? second.entries(for: key) : known
    }

    /// The content of an entry; what only the second has is given to the first too.
    public func body(of entry: HTTPCacheEntry, for key: String) throws -> [UInt8]? {
        if let body = try first.body(of: entry, for: key) { return body }
        // Read without the lock, so that slow reads do not wait for each other.
        guard let body = try second.body(of: entry, for: key) else { return nil }
        try changing.withLock { _ in
            guard try second.entries(for: key) == [entry] else { return }
            try first.update(key, body: body) { entries in if entries.isEmpty { entries = [entry] } }
        }
        return body
    }

    /// Changes what is stored under a key. Where the lasting storage fails, the fast one is changed all the same, so that what
    /// was invalidated is not shown again while it lasts; then the failure is thrown.
    public func update(_ key: String, body: [UInt8]?, _ change: @Sendable (inout [HTTPCacheEntry]) -> Void) throws {
        try changing.withLock { _ in
            do {
                try second.update(key, body: body, change)
            } catch {
                try first.update(key, body: body, change)
                throw error
            }
            let known = try second.entries(for: key)
            try first.update(key, body: body) { $0 = known }
            if try first.entries(for: key).count != known.count { try first.update(key, body: nil) { $0 = [] } }
        }
    }

    /// The keys under which something is stored.
    public func keys() throws -> [String] { Array(Set(try first.keys()).union(try second.keys())) }

    /// Removes everything. Where one of the two fails, the other is emptied all the same.
    public func removeAll() throws {
        try changing.withLock { _ in
            do { try first.removeAll() } catch {
                try second.removeAll()
                throw error
            }
            try second.removeAll()
        }
    }
}
