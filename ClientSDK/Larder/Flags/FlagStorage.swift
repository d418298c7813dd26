import Synchronization

/// Keeps feature flags between two lives of a process. Safe from any thread.
public protocol FlagStorage: Sendable {
    /// What was saved last; nil if nothing was.
    func load() throws -> [UInt8]?

    /// Keeps bytes in place of those that were saved before.
    func save(_ bytes: [UInt8]) throws
}

/// Keeps feature flags in a `DiskStore`.
///
/// As metadata and not as a record: records are evicted when the budget is used up and go when the cache is cleared, and a start
/// without flags after that would be another application.
public struct DiskFlagStorage: FlagStorage {
    private let store: DiskStore
    private let key: String

    /// - Parameter key: under which metadata key.
    public init(_ store: DiskStore, key: String = "larder.flags") {
        self.store = store
        self.key = key
    }

    /// What was saved last.
    public func load() throws -> [UInt8]? { try store.metadata(key) }

    /// Keeps bytes, in one transaction.
    public func save(_ bytes: [UInt8]) throws {
        try store.write { transaction in try transaction.setMetadata(bytes, for: key) }
    }
}

/// Keeps feature flags for as long as it lives: for tests and previews.
public final class MemoryFlagStorage: FlagStorage {
    private let bytes: Mutex<[UInt8]?>

    /// A storage that holds bytes, or nothing.
    public init(_ bytes: [UInt8]? = nil) { self.bytes = Mutex(bytes) }

    /// What was saved last.
    public func load() -> [UInt8]? { bytes.withLock { $0 } }

    /// Keeps bytes.
    public func save(_ bytes: [UInt8]) { self.bytes.withLock { $0 = bytes } }
}
