import Glibc
import LarderSQLite
import LarderTime
package import Synchronization

/// The state shared by all connections of a store: paths, settings and pending chores.
///
/// Safe from any thread. Nothing is called while its mutex is held.
package final class DiskContext: Sendable {
    /// Pending work that readers leave for the next writer.
    private struct DeferredWrites {
        /// Access times that are not stored yet.
        var stamps: [Int64: Int64] = [:]
        /// Damaged rows and their checksums.
        var damaged: [Int64: Int64] = [:]
        var events: [DiskStore.Event] = []
        /// Whether a checksum was wrong: the pages around it may be damaged too.
        var isSuspect = false
    }

    let configuration: DiskStore.Configuration
    let checksum: DiskChecksum
    let seal: DiskSeal
    let files: DiskFiles
    /// The operations of the outbox that this process knows.
    let knownOperations = Mutex<(@Sendable () -> [DiskOutboxRow])?>(nil)
    /// How often commits of other processes were seen: cached reads from before are invalid. Only grows.
    package let foreignCommits = Atomic<UInt64>(0)
    /// The open file that only an erasure of this store removes: while it is open, no other file gets its number.
    private let identity = Mutex<Int32?>(nil)
    private let granularity: Int64
    private let deferred = Mutex(DeferredWrites())

    /// Beyond this number access times are dropped, and noted again by the next reader.
    private static let stampsMaximum = 4_096
    private static let damagedMaximum = 1_024

    init(_ configuration: DiskStore.Configuration) {
        var configuration = configuration
        while configuration.directory.count > 1, configuration.directory.hasSuffix("/") {
            configuration.directory.removeLast()
        }
        self.configuration = configuration
        granularity = max(1, configuration.accessGranularity.nanosecondsSaturating)
        checksum = DiskChecksum(transform: configuration.transform?.identifier)
        seal = DiskSeal(transform: configuration.transform)
        files = DiskFiles(faults: configuration.faults)
    }

    deinit { identity.withLock { if let file = $0 { close(file) } } }

    // MARK: Identity

    /// The file that says which store this is. That of a directory that the system may remove is elsewhere.
    private var pathOfIdentity: String { configuration.restartsWhileExists ?? pathOfLock }

    /// Remembers which store this is, if it exists and this was not known before.
    func identify() {
        identity.withLock { file in
            guard file == nil else { return }
            let opened = unsafe open(pathOfIdentity, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
            if opened >= 0 { file = opened }
        }
    }

    /// Whether the store was erased, and another one is in its place: that of the next user.
    var isReplaced: Bool {
        identity.withLock { file in
            guard let file, files.exists(pathOfIdentity) else { return false }
            return !FileLock.isNamed(file, pathOfIdentity)
        }
    }

    var path: String { configuration.directory + "/store.sqlite" }
    /// A new database while it is being filled.
    var pathOfNew: String { configuration.directory + "/store.new" }
    /// A complete new database that is to replace the old one.
    var pathOfReady: String { configuration.directory + "/store.ready" }
    /// A copy of a damaged database, during salvage.
    var pathOfCopy: String { configuration.directory + "/store.copy" }
    /// Locked while a store is opened or replaced.
    var pathOfLock: String { configuration.directory + "/store.lock" }

    func options(readsOnly: Bool = false) -> Database.Options {
        var options = Database.Options()
        options.durability = .normal
        options.creates = false
        options.readsOnly = readsOnly
        options.checkpointPages = 1_000
        options.pageCacheKibibytes = 2_048
        let milliseconds = configuration.busyTimeout.nanosecondsSaturating / 1_000_000
        options.busyTimeoutMilliseconds = Int32(clamping: max(0, milliseconds))
        return options
    }

    /// Now, in nanoseconds since the epoch.
    var now: Int64 { configuration.clock.now.nanosecondsSinceEpoch }

    /// The access stamp for now.
    var stamp: Int64 { now / granularity * granularity }

    // MARK: DeferredWrites

    /// Notes the access of a row if its stored time is old enough.
    func noteAccess(_ row: Int64, stamped: Int64) {
        let now = now
        guard now.subtractingReportingOverflow(stamped).partialValue >= granularity else { return }
        let stamp = now / granularity * granularity
        deferred.withLock { if $0.stamps.count < Self.stampsMaximum { $0.stamps[row] = stamp } }
    }

    /// Reports a damaged row, and notes it for removal by the next writer. Beyond 1,024 rows nothing is noted until some were removed.
    ///
    /// - Parameters:
    ///   - item: the description of its key.
    ///   - cause: why it cannot be decoded; nil: its checksum is wrong.
    func noteDamage(_ row: DiskRow, item: String, cause: String? = nil) {
        deferred.withLock { deferred in
            guard deferred.damaged.count < Self.damagedMaximum, deferred.damaged[row.number] != row.sum else { return }
            deferred.damaged[row.number] = row.sum
            if cause == nil { deferred.isSuspect = true }
            let reason = cause == nil ? "checksum" : "undecodable"
            deferred.events.append(.discarded(item: item, reason: reason, cause: cause))
        }
    }

    /// Whether a row is known to be damaged.
    func isDamaged(_ row: Int64, sum: Int64) -> Bool { deferred.withLock { $0.damaged[row] == sum } }

    /// Takes up to `count` chores of each kind, to be done or returned.
    func takeDeferredWrites(_ count: Int) -> (stamps: [(Int64, Int64)], damaged: [(Int64, Int64)]) {
        deferred.withLock { deferred in
            guard !deferred.stamps.isEmpty || !deferred.damaged.isEmpty else { return ([], []) }
            let stamps = Array(deferred.stamps.prefix(count)).map { ($0.key, $0.value) }
            let damaged = Array(deferred.damaged.prefix(count)).map { ($0.key, $0.value) }
            for (row, _) in stamps { deferred.stamps[row] = nil }
            for (row, _) in damaged { deferred.damaged[row] = nil }
            return (stamps, damaged)
        }
    }

    /// Whether the whole file should be checked. True once for each suspicion.
    func takeSuspicion() -> Bool {
        deferred.withLock { deferred in
            defer { deferred.isSuspect = false }
            return deferred.isSuspect
        }
    }

    func giveBack(_ damaged: [(Int64, Int64)]) {
        deferred.withLock { for (row, sum) in damaged { $0.damaged[row] = sum } }
    }

    /// Whether chores are left.
    var hasChores: Bool { deferred.withLock { !$0.stamps.isEmpty || !$0.damaged.isEmpty } }

    /// Forgets all chores, because row numbers have changed.
    func dropDeferredWrites() {
        deferred.withLock { deferred in
            deferred.stamps = [:]
            deferred.damaged = [:]
        }
    }

    /// Keeps an event until `deliver()`.
    func post(_ event: DiskStore.Event) { deferred.withLock { $0.events.append(event) } }

    /// Delivers the events, and those of the content that this store has evicted items from. Called without a lock.
    func deliver() {
        let events = deferred.withLock { deferred in
            guard !deferred.events.isEmpty else { return [DiskStore.Event]() }
            defer { deferred.events = [] }
            return deferred.events
        }
        for event in events { configuration.onEvent(event) }
        configuration.content()?.context.deliver()
    }
}
