import LarderSQLite
import LarderTime
import Synchronization

/// What all connections of a store share: where it is, how it is kept, and what is still to be done.
///
/// Safe from any thread. Nothing is called while its mutex is held.
final class DiskContext: Sendable {
    /// What a reader has found and a writer will do.
    private struct Chores {
        /// When rows were read, where that is not written down yet.
        var stamps: [Int64: Int64] = [:]
        /// Damaged rows and their checksums.
        var damaged: [Int64: Damage] = [:]
        var events: [DiskEvent] = []
        /// Whether a checksum was wrong: then the pages around it may be damaged too.
        var isSuspect = false
    }

    struct Damage {
        let sum: Int64
        let item: DiskEvent.Item
        let reason: DiskEvent.DiscardReason
    }

    let configuration: DiskStore.Configuration
    let checksum: DiskChecksum
    let files: DiskFiles
    let blobs: BlobFiles
    /// What other processes have committed.
    let others = ForeignCommits()
    private let granularity: Int64
    private let chores = Mutex(Chores())

    /// More are forgotten: the next reader notes them again.
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
        files = DiskFiles(faults: configuration.faults?.plan)
        blobs = BlobFiles(directory: configuration.directory + "/blobs", files: files)
    }

    var path: String { configuration.directory + "/store.sqlite" }
    /// A new database while it is being filled.
    var pathOfNew: String { configuration.directory + "/store.new" }
    /// A new database that is whole and takes the old one's place.
    var pathOfReady: String { configuration.directory + "/store.ready" }
    /// A copy of a damaged database, while something is saved from it.
    var pathOfCopy: String { configuration.directory + "/store.copy" }
    /// Held while a store is opened or replaced.
    var pathOfLock: String { configuration.directory + "/store.lock" }
    /// Before the number of a database that was set aside.
    var prefixOfAside: String { "store.damaged-" }

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

    // MARK: Chores

    /// A row was read that was stamped at a time; noted where that is long enough ago.
    func noteAccess(_ row: Int64, stamped: Int64) {
        let now = now
        guard now.subtractingReportingOverflow(stamped).partialValue >= granularity else { return }
        let stamp = now / granularity * granularity
        chores.withLock { if $0.stamps.count < Self.stampsMaximum { $0.stamps[row] = stamp } }
    }

    /// A row is damaged: it is to be removed. True where that was not known yet.
    func noteDamage(_ row: Int64, _ damage: Damage) {
        chores.withLock { chores in
            guard chores.damaged.count < Self.damagedMaximum, chores.damaged[row]?.sum != damage.sum else { return }
            chores.damaged[row] = damage
            if damage.reason == .checksum { chores.isSuspect = true }
            // A file may be missing only for one who still reads what was replaced meanwhile. It is reported when it is removed.
            if damage.reason != .fileMissing { chores.events.append(.discarded(damage.item, damage.reason)) }
        }
    }

    /// Whether a row is known to be damaged.
    func isDamaged(_ row: Int64, sum: Int64) -> Bool { chores.withLock { $0.damaged[row]?.sum == sum } }

    /// Takes up to `count` of each of the chores; they are done or given back.
    func takeChores(_ count: Int) -> (stamps: [(Int64, Int64)], damaged: [(Int64, Damage)]) {
        chores.withLock { chores in
            guard !chores.stamps.isEmpty || !chores.damaged.isEmpty else { return ([], []) }
            let stamps = Array(chores.stamps.prefix(count)).map { ($0.key, $0.value) }
            let damaged = Array(chores.damaged.prefix(count)).map { ($0.key, $0.value) }
            for (row, _) in stamps { chores.stamps[row] = nil }
            for (row, _) in damaged { chores.damaged[row] = nil }
            return (stamps, damaged)
        }
    }

    /// Whether the whole file should be looked at. Asked once for each suspicion.
    func takeSuspicion() -> Bool {
        chores.withLock { chores in
            defer { chores.isSuspect = false }
            return chores.isSuspect
        }
    }

    func giveBack(_ damaged: [(Int64, Damage)]) {
        guard !damaged.isEmpty else { return }
        chores.withLock { for (row, damage) in damaged { $0.damaged[row] = damage } }
    }

    /// Whether something is left to be done.
    var hasChores: Bool { chores.withLock { !$0.stamps.isEmpty || !$0.damaged.isEmpty } }

    /// Row numbers mean nothing any more.
    func forgetChores() {
        chores.withLock { chores in
            chores.stamps = [:]
            chores.damaged = [:]
        }
    }

    /// Keeps an event until `deliver()`.
    func post(_ event: DiskEvent) { chores.withLock { $0.events.append(event) } }

    /// Hands out the events. Called without any lock.
    func deliver() {
        let events = chores.withLock { chores in
            guard !chores.events.isEmpty else { return [DiskEvent]() }
            defer { chores.events = [] }
            return chores.events
        }
        for event in events { configuration.onEvent(event) }
    }

    // MARK: Payloads

    /// What is stored for a payload.
    func encode(_ payload: [UInt8]) throws(DiskError) -> [UInt8] {
        guard let transform = configuration.transform else { return payload }
        do {
            return try transform.encode(payload)
        } catch {
            throw DiskError(
                .transform,
                "The payload transform «\(transform.identifier)» could not encode; nothing was stored: \(error)",
                cause: error
            )
        }
    }
}
