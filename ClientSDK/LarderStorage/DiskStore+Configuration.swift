import LarderCoding
package import LarderSQLite
public import LarderTime

extension DiskStore {
    /// The failures that a commit survives.
    public enum Durability: Sendable, Hashable {
        case processDeath
        /// A loss of power too. The commit waits for the disk.
        case powerLoss
    }

    /// The settings of a store.
    public struct Configuration: Sendable {
        /// The directory of the store, one for each account (`directory(forAccount:in:)`), created with mode 0700. The system may remove
        /// it at any time if `outboxDirectory` is elsewhere and `restartsWhileExists` is set.
        public var directory: String
        /// The directory of the outbox's database: operations, their results and keys, tokens and settings. It must not be purged. Nil:
        /// `outbox` in `directory`.
        public var outboxDirectory: String?
        /// A path that says whether a store whose directory has vanished begins anew, empty. With nil, and while nothing has this path,
        /// a vanished directory counts as erased, and writes throw. For a store in a directory that the system may remove at any time:
        /// a file that a sign-out removes, such as `store.lock` in the directory of the outbox.
        public var restartsWhileExists: String?
        /// The maximum number of stored bytes. Beyond it the least recently read items are removed. Not negative; a
        /// budget smaller than an item does not store it.
        public var bytesMaximum: Int64 = 256 << 20
        /// The free space of the disk, in bytes, below which the budget shrinks by what is missing, down to a quarter of `bytesMaximum`: the
        /// store makes room before the disk is full. 0: it never does.
        public var freeBytesMinimum: Int64 = 64 << 20
        /// The free space at a path, in bytes; nil if it is unknown. Replaced by tests.
        package var freeBytes: @Sendable (_ path: String) -> Int64? = { DiskFiles.freeBytes(at: $0) }
        /// The precision of access times: reading again within this time writes nothing.
        public var accessGranularity: Duration = .seconds(600)
        /// The time for which entities and lists are kept after they became stale, to be shown without a network.
        public var staleRetention: Duration = .seconds(30 * 86_400)
        /// The time to wait for another process that writes.
        public var busyTimeout: Duration = .seconds(5)
        /// Whether the store is opened by the first read or write, which then throws its errors; otherwise by `init`.
        public var opensLate = false
        /// Compresses or encrypts payloads; nil stores them as they are.
        public var transform: (any PayloadTransform)?
        /// Used for all times.
        public var clock: any WallClock
        /// Called with events of the store, on any thread, while the store is not locked.
        public var onEvent: @Sendable (Event) -> Void = { _ in }
        /// The disk space reserved for sending the outbox, from the first operation on: sending needs a write even if the outbox
        /// has filled the disk. Less than about 6 MiB may not suffice to copy the log; 0 reserves none.
        public var outboxReserveBytes: Int64 = 6 << 20
        /// The store of the content, if this is the store of an outbox.
        var content: @Sendable () -> DiskStore? = { nil }
        /// Injected disk faults, for tests.
        package var faults: (any DiskFaults)?
        /// Whether the other stores of a client have the same faults.
        package var sharesFaults = false
        /// Whether calls may wait for the disk, so that asynchronous functions of the layers above make them on threads for the disk.
        /// False for a simulation on one thread.
        package var mayBlock = true
        /// Whether the database is in memory: nothing of it is on a disk, and it ends with the store.
        package fileprivate(set) var isInMemory = false

        /// Creates a configuration.
        public init(directory: String, clock: any WallClock = SystemWallClock()) {
            self.directory = directory
            self.clock = clock
        }
    }

    /// The directory for an account, named by a digest: the account's name is not readable and cannot lead out of `parent`.
    public static func directory(forAccount account: String, in parent: String) -> String {
        "\(parent)/\(hexEncode(SHA256.hash(Array(account.utf8))).prefix(32))"
    }
}

extension DiskStore.Configuration {
    /// The settings of a store in memory. It has one connection, so that a read waits for a write in progress.
    package static func inMemory(bytesMaximum: Int64, clock: any WallClock) -> Self {
        var settings = Self(directory: "", clock: clock)
        settings.isInMemory = true
        settings.opensLate = true
        settings.bytesMaximum = bytesMaximum
        settings.freeBytesMinimum = 0
        settings.accessGranularity = .seconds(1)
        settings.outboxReserveBytes = 0
        return settings
    }
}
