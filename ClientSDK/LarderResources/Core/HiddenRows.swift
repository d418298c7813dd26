import LarderStorage
import Synchronization

/// The keys whose rows on the disk count no longer, because the disk did not take their changes.
///
/// A commit changes a copy, which replaces the cache's own when it has succeeded. Beyond 16,384 keys all content on the disk is hidden
/// until the disk takes changes again.
struct HiddenRows: Sendable {
    struct Entry: Sendable {
        /// Whether what is in memory in its place belongs on the disk.
        let belongsOnDisk: Bool
        /// That of the change that the disk lacks. A later row on the disk is another process's.
        let stamp: Stamp
    }

    private(set) var keys: [StoredKey: Entry] = [:]
    private(set) var isAll = false
    private static let countMaximum = 16_384

    func contains(_ key: StoredKey) -> Bool { keys[key] != nil }

    /// Beyond the limit what memory has goes to the disk with its next reply.
    mutating func insert(_ key: StoredKey, belongsOnDisk: Bool, at stamp: Stamp) {
        guard !isAll else { return }
        keys[key] = Entry(belongsOnDisk: belongsOnDisk, stamp: stamp)
        isAll = isAll || keys.count > Self.countMaximum
    }
}

extension CacheCore {
    func isHidden(_ key: StoredKey) -> Bool { hidden.withLock { $0.contains(key) } }
}
