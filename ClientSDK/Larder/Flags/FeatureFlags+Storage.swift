public import LarderStorage

extension FeatureFlags {
    /// Stores feature flags across restarts of the process. Safe from any thread.
    public protocol Storage: Sendable {
        /// The bytes that were saved last; nil if there are none.
        func load() throws -> [UInt8]?

        /// Replaces the saved bytes.
        func save(_ bytes: [UInt8]) throws
    }
}

extension FeatureFlags {
    /// Stores feature flags in a `DiskStore`.
    ///
    /// They are stored as metadata, because records are evicted under the budget and removed when the cache is cleared.
    public struct DiskStorage: Storage {
        private let store: DiskStore
        private let key: String

        /// - Parameters:
        ///   - store: keeps the settings as metadata.
        ///   - key: the metadata key.
        public init(_ store: DiskStore, key: String = "larder.flags") {
            self.store = store
            self.key = key
        }

        /// The bytes that were saved last.
        public func load() throws -> [UInt8]? { try store.metadata(key) }

        /// Replaces the saved bytes in one transaction.
        public func save(_ bytes: [UInt8]) throws {
            try store.write { transaction in try transaction.setMetadata(bytes, for: key) }
        }
    }
}
