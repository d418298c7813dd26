import LarderCoding
public import LarderTime

extension DiskStore {
    /// Which things leave first when the budget is used up. A struct, because there may be others.
    public struct Eviction: RawRepresentable, Sendable, Hashable {
        /// The policy's name.
        public let rawValue: String

        /// A policy by its name; one that is not known counts as `leastRecentlyUsed`.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// What was not read for longest, to the granularity of `accessGranularity`.
        public static let leastRecentlyUsed = Eviction(rawValue: "leastRecentlyUsed")
        /// What was stored first, however often it was renewed since.
        public static let firstStored = Eviction(rawValue: "firstStored")
        /// What would be removed soonest for its age.
        public static let soonestOutdated = Eviction(rawValue: "soonestOutdated")
    }

    /// What a commit survives.
    public enum Durability: Sendable, Hashable {
        /// The death of the process.
        case processDeath
        /// The loss of power too. It waits for the disk.
        case powerLoss
    }

    /// How a store is kept.
    public struct Configuration: Sendable {
        /// Where it lives: a directory of its own for each account (`directory(forAccount:in:)`), made with mode 0700.
        public var directory: String
        /// How much may be stored, blobs included. Not negative; less than what a single item needs stores nothing.
        public var bytesMaximum: Int64 = 256 << 20
        /// Payloads with more bytes than this, as they are stored, become files.
        public var blobThreshold = 64 << 10
        /// What leaves first.
        public var eviction: Eviction = .leastRecentlyUsed
        /// How exactly it is known when something was last read: reading again within this time writes nothing.
        public var accessGranularity: Duration = .seconds(600)
        /// For how long entities and lists are kept after they stopped being fresh, to be shown when there is no network.
        public var staleRetention: Duration = .seconds(30 * 86_400)
        /// How long to wait for another process that writes.
        public var busyTimeout: Duration = .seconds(5)
        /// Whether the store is opened by whoever first reads or writes, and told then what is wrong with it; otherwise when it is made.
        public var opensLate = false
        /// Compresses or encrypts payloads.
        public var transform: (any PayloadTransform)?
        /// Says what time it is.
        public var clock: any WallClock
        /// Called with what happened and nobody asked for; from any thread, never while the store is locked.
        public var onEvent: @Sendable (DiskEvent) -> Void = { _ in }
        /// How much room on the disk is kept for sending what waits in the outbox, from the first operation on: to send needs a write, also
        /// where the outbox itself has filled the disk. Less than some 6 MiB may not suffice for copying the log; 0 keeps none.
        public var outboxReserveBytes: Int64 = 6 << 20
        /// In tests, what goes wrong with the disk.
        package var faults: DiskFaults?

        /// A store in a directory.
        public init(directory: String, clock: any WallClock = SystemWallClock()) {
            self.directory = directory
            self.clock = clock
        }
    }

    /// The directory for an account: named by a digest, so that the account's name neither shows nor leads out of `parent`.
    public static func directory(forAccount account: String, in parent: String) -> String {
        "\(parent)/\(hexEncode(SHA256.hash(Array(account.utf8))).prefix(32))"
    }
}
