package import LarderEvents
import LarderMemory
import LarderStorage
import LarderTime
import Synchronization

/// The shared engine of a cache: the tiers, the clocks, the order of requests, and the nodes.
///
/// Safe from any thread. Locks are taken in this order: a commit, then the disk, then memory; nodes' own last. No user code runs while
/// a lock is held, except the functions that `ChangeOwner.Function` lists, within a commit: if one of them changes the cache, the
/// process stops with a message.
package final class CacheCore: Sendable {
    /// Called when the network returns.
    package let returns = OrderedObservers<Void>()
    /// The tokens for reads that follow a failure.
    let readRetryBudget: Mutex<RetryPolicy.Budget>

    /// The lifetime of values that have none.
    static let longestLifetime: Duration = .seconds(30 * 86_400)
    private static let clockKey = "larder.clock"

    let configuration: CacheConfiguration
    let disk: DiskStore?
    /// The store of the outbox: a database of its own, so that a change of the user never waits for a commit of content.
    let outboxDisk: DiskStore?
    let entities: EntityTable
    let queries: MemoryTier<QueryKey, StoredQuery>
    let invalidations = InvalidationTable()
    let order = RequestOrder()
    let resets = ListResets()
    let nodes: NodeRegistry
    let dependencies = DependencyIndex()
    let scheduler: RefreshScheduler
    private let departures = EvictionTally()
    private let clocks: ClockGuard
    /// Held during a commit. The value is the latest known time that is stored.
    let commits: Mutex<WallTime>
    /// Held while rows of the outbox are stored and the pending changes that they show are put into memory. Never while content is
    /// stored.
    let outboxCommits = Mutex(())
    /// The thread that holds `outboxCommits`.
    let outboxOwner: ChangeOwner
    /// The number of commits; locked while memory is changed.
    let memory = Mutex<UInt64>(0)
    private let hasUncertainTimes = Atomic<Bool>(false)
    /// The current lifetime factors, by the name of the freshness class.
    let stretches = Mutex<[String: Double]>([:])
    let hasStretches = Atomic<Bool>(false)
    let foreign = ForeignCommitMonitor()
    let isDiskTierOn = Atomic<Bool>(true)
    /// The keys that readers keep off the disk.
    let memoryOnly = MemoryOnlyKeys()
    /// What memory has and the disk lacks, because it has failed.
    let unwritten = UnwrittenKeys()
    /// The thread that holds `commits`.
    let owner: ChangeOwner
    /// The thread that holds the outbox's gate.
    let gateOwner: ChangeOwner
    let delayed: DelayedEvents
    /// Run the disk work of asynchronous functions (`reading`, `changing`); nil without a disk.
    let reads: DiskExecutor?
    let changes: DiskExecutor?
    /// Set within `commits`, so that no commit follows.
    private let closed = Atomic<Bool>(false)

    init(_ configuration: CacheConfiguration) throws(LarderError) {
        self.configuration = configuration
        readRetryBudget = Mutex(configuration.readRetryBudget)
        let onEvent = configuration.onEvent
        let (owner, gateOwner, outboxOwner, delayed) = (ChangeOwner(), ChangeOwner(), ChangeOwner(), DelayedEvents())
        (self.owner, self.gateOwner, self.outboxOwner, self.delayed) = (owner, gateOwner, outboxOwner, delayed)
        switch configuration.storage {
        case .memory: disk = nil
        case .store(let store): disk = store
        case .disk(var settings):
            settings.clock = configuration.wallClock
            let onDiskEvent = settings.onEvent
            settings.onEvent = { event in
                let tell = { @Sendable in
                    onDiskEvent(event)
                    onEvent(.disk(event))
                }
                if owner.isCaller || gateOwner.isCaller || outboxOwner.isCaller { delayed.add(tell) } else { tell() }
            }
            do { disk = try DiskStore(settings) } catch { throw LarderError(error) }
        }
        do { outboxDisk = try disk?.outboxStore() } catch { throw LarderError(error) }
        let mayBlock = disk?.configuration.mayBlock ?? false
        reads = mayBlock ? DiskExecutor(threadsMaximum: 4) : nil
        changes = mayBlock ? DiskExecutor(threadsMaximum: 4) : nil
        let clock = configuration.monotonicClock
        // With a smaller limit a value could be evicted before its reader has it.
        let entries = max(64, configuration.memoryEntriesMaximum)
        let bytes = max(64 << 10, configuration.memoryBytesMaximum)
        let departures = departures
        entities = EntityTable(
            limits: .init(count: entries, cost: bytes),
            clock: clock,
            departures: departures,
            others: disk?.context.others
        )
        queries = MemoryTier(
            limits: .init(count: entries, cost: bytes),
            clock: clock,
            onDeparture: { departures.note($0) }
        )
        nodes = NodeRegistry(countMaximum: max(1, entries / 4))
        scheduler = RefreshScheduler(clock: clock, sleeper: configuration.monotonicClock)
        clocks = ClockGuard(wall: configuration.wallClock, monotonic: clock)
        commits = Mutex(WallTime(nanosecondsSinceEpoch: .min))
        try restore()
        _ = applyNetworkBehavior()
    }

    /// Loads the tag invalidations and the latest known time from the store.
    private func restore() throws(LarderError) {
        guard let disk else { return }
        do {
            try restoreDiskTier(disk)
            try checkSettled()
            let (marks, clock) = try disk.read { transaction in
                (
                    try transaction.metadata(InvalidationTable.metadataKey),
                    try transaction.metadata(Self.clockKey)
                )
            }
            if let marks { invalidations.merge(marks) }
            guard let clock, let seen = Int64(String(decoding: clock, as: UTF8.self)) else { return }
            let latest = WallTime(nanosecondsSinceEpoch: seen)
            if configuration.wallClock.now < latest - Moment.tolerance { markTimesUncertain() }
        } catch {
            throw LarderError(error)
        }
    }

    // MARK: Time

    /// The present moment. Not called while a node is locked.
    package func now() -> Moment {
        let (moment, wasSetBack) = clocks.read()
        if wasSetBack { markTimesUncertain() }
        return moment
    }

    /// Whether times on disk are uncertain and not yet marked there.
    var areTimesUncertain: Bool { hasUncertainTimes.load(ordering: .relaxed) }

    /// Marks all stored times as uncertain, because the clock was set back.
    private func markTimesUncertain() {
        hasUncertainTimes.store(true, ordering: .relaxed)
        configuration.onEvent(.clockSetBack)
        storeUncertainty()
        scheduler.lookAtAll()
    }

    private func storeUncertainty() {
        guard let disk, areTimesUncertain else { return }
        let seen = clocks.highWater
        do {
            try disk.write { transaction in
                try transaction.markTimesUncertain()
                try transaction.setMetadata(Self.encode(seen), for: Self.clockKey)
            }
            hasUncertainTimes.store(false, ordering: .relaxed)
        } catch {
            // Until it succeeds, all times from the disk count as uncertain.
            configuration.onEvent(.storageFailed(LarderError(error)))
        }
    }

    private static func encode(_ time: WallTime) -> [UInt8] { Array("\(time.nanosecondsSinceEpoch)".utf8) }

    // MARK: Reading

    /// The server value of an entity, and whether it was read from the disk.
    func entity(_ key: EntityKey, _ decode: StoredEntityDecoder) -> (stored: StoredEntity, isFromDisk: Bool)? {
        if let stored = entities[key] { return (stored, false) }
        guard let disk = contentDisk, !unwritten.contains(.entity(key)) else { return nil }
        let seenCommits = seenCommits
        let count = memory.withLock { $0 }
        do {
            guard let row = try disk.entity(key) else { return nil }
            let value: any Sendable
            do { value = try decode(row.payload) } catch {
                // The row stays: it may have another type, or be from a newer version of the application.
                throw LarderError(
                    .storage,
                    "The row under \"\(key)\" cannot be decoded as the requested type: \(error). It stays as it is. Read it "
                        + "as the type that it was stored as, or fetch it again.",
                    cause: error
                )
            }
            let stored = StoredEntity(
                row,
                value: value,
                epoch: now().epoch,
                areTimesUncertain: areTimesUncertain,
                seenCommits: seenCommits
            )
            fill(stored, key, ifNothingSince: count)
            reportEvictions()
            return (stored, true)
        } catch {
            configuration.onEvent(.storageFailed(LarderError(error)))
            return nil
        }
    }

    /// A query index, with its entities if it was read from the disk.
    func query(_ key: QueryKey) -> (stored: StoredQuery, rows: [EntityKey: DiskEntity]?)? {
        if let stored = knownQuery(key) { return (stored, nil) }
        guard let disk = contentDisk, !unwritten.contains(.query(key)) else { return nil }
        let seenCommits = seenCommits
        let count = memory.withLock { $0 }
        do {
            guard let list = try disk.list(key) else { return nil }
            let stored = StoredQuery(
                list.query,
                epoch: now().epoch,
                areTimesUncertain: areTimesUncertain,
                seenCommits: seenCommits
            )
            memory.withLock { present in
                if present == count { queries.store(stored, for: key, cost: stored.cost) }
            }
            var rows: [EntityKey: DiskEntity] = [:]
            for case let row? in list.entities where !unwritten.contains(.entity(row.key)) { rows[row.key] = row }
            reportEvictions()
            return (stored, rows)
        } catch {
            configuration.onEvent(.storageFailed(LarderError(error)))
            return nil
        }
    }

    /// A query index in memory, unless another process has changed the disk since.
    func knownQuery(_ key: QueryKey) -> StoredQuery? {
        guard let stored = queries[key] else { return nil }
        return stored.seenCommits >= seenCommits ? stored : nil
    }

    /// Stores a row in memory, unless there was a commit meanwhile.
    func fill(_ stored: StoredEntity, _ key: EntityKey, ifNothingSince count: UInt64) {
        memory.withLock { present in
            if present == count { entities.store(stored, for: key) }
        }
    }

    /// The number of commits. Content that is assembled between two equal counts is consistent.
    var commitCount: UInt64 { memory.withLock { $0 } }

    // MARK: Writing

    /// Commits an update and notifies observers.
    ///
    /// - Parameters:
    ///   - order: the order of the request that was answered; nil for an event.
    ///   - isTolerant: whether memory is changed although the disk fails, which is reported.
    func commit(
        _ update: CacheUpdate,
        order answered: UInt64? = nil,
        moment: Moment? = nil,
        isTolerant: Bool = false
    ) throws(LarderError) {
        defer { delayed.deliver() }
        for key in update.keptOffDisk { try keepOffDisk(key) }
        announce(try carryOut(update, order: answered, moment: moment, isTolerant: isTolerant))
    }

    /// Commits an update without notification: `announce` must follow outside of all locks.
    ///
    /// - Parameter settle: stores the rows of the outbox and the pending changes after the content: calls its argument once with them.
    func carryOut(
        _ update: CacheUpdate,
        order answered: UInt64? = nil,
        moment: Moment? = nil,
        isTolerant: Bool = false,
        settle: ((CacheUpdate, (CacheUpdate) throws -> Void) throws -> Void)? = nil
    ) throws(LarderError) -> Commit {
        owner.requireOutside("A change to the cache")
        outboxOwner.requireOutside("A change to the cache")
        let moment = moment ?? now()
        let (content, local) = update.divided
        let order = answered ?? self.order.now()
        let start = Commit(core: self, order: order, moment: moment, isAnswer: answered != nil)
        do {
            if content.steps.isEmpty, settle == nil { return try carryOutLocally(local, start) }
            let encoded = disk == nil || update.isMemoryOnly ? content : content.encoded(unlessEqualTo: entities)
            return try commits.withLock { savedHighWater in
                owner.begin()
                defer { owner.end() }
                guard !isClosed else { throw Self.isClosedError }
                var commit = try perform(encoded, start, &savedHighWater, isTolerant: isTolerant)
                guard settle != nil || !local.isEmpty else {
                    commit.affected = apply(commit)
                    return commit
                }
                try settleRows(of: local, settle, &commit)
                return commit
            }
        } catch {
            throw LarderError(error)
        }
    }

    static var isClosedError: LarderError { LarderError(.closed, "The cache was closed or erased.") }

    /// Notifies the observers of a commit.
    func announce(_ commit: Commit) {
        delayed.deliver()
        if areTimesUncertain { storeUncertainty() }
        for problem in commit.problems { configuration.onEvent(.storageFailed(problem)) }
        tell(commit)
        applyForeignCommits()
    }

    private func perform(
        _ update: CacheUpdate,
        _ start: Commit,
        _ savedHighWater: inout WallTime,
        isTolerant: Bool
    ) throws -> Commit {
        // Decided here, where no reader can intervene that keeps the key off the disk.
        let isOffDisk = update.isMemoryOnly || update.answered.map { memoryOnly.contains($0) } ?? false
        func inMemory(hasFailedDisk: Bool = false) throws -> Commit {
            var commit = start
            commit.hasFailedDisk = hasFailedDisk
            commit.isMemoryOnly = isOffDisk
            try commit.perform(update.steps, DiskPart(connection: nil))
            return commit
        }
        guard let disk, !isOffDisk else { return try inMemory() }
        let seen = clocks.highWater
        let isTimeToSave = seen - savedHighWater > .seconds(60)
        let lacking = isDiskTierOn.load(ordering: .acquiring) ? unwritten.present : nil
        do {
            let commit = try writeContent(disk, update) { transaction in
                var commit = start
                // Foreign commits up to here are known.
                commit.seenCommits = seenCommits
                if let lacking { try commit.write(lacking, DiskPart(connection: transaction.connection)) }
                try commit.perform(update.steps, in: transaction)
                if commit.hasNewMarks {
                    // Marks of other processes are kept.
                    let key = InvalidationTable.metadataKey
                    if let marks = try transaction.read({ reading in try reading.metadata(key) }) {
                        invalidations.merge(marks)
                    }
                    try transaction.setMetadata(invalidations.encoded, for: InvalidationTable.metadataKey)
                }
                if isTimeToSave { try transaction.setMetadata(Self.encode(seen), for: Self.clockKey) }
                if update.precedesRows { commit.settled = try nextSettled(in: transaction) }
                return commit
            }
            if isTimeToSave { savedHighWater = seen }
            if lacking != nil { unwritten.removeAll() }
            return commit
        } catch let error as DiskError where isTolerant {
            var commit = try inMemory(hasFailedDisk: contentDisk != nil)
            unwritten.note(commit, seenCommits: seenCommits)
            commit.note(LarderError(error))
            return commit
        }
    }

    /// - Returns: the nodes to notify.
    func apply(_ commit: Commit) -> [DependencyIndex.Affected] {
        let changed = adoptMemberships(of: commit)
        return memory.withLock { count in
            count += 1
            for (key, change) in commit.entities {
                switch change {
                case .set(let stored):
                    entities.store(stored, for: key)
                    entities.endOverlays(key, version: stored.version)
                case .removed, .forgotten, .elsewhere: entities.remove(key)
                }
            }
            for (key, change) in commit.queries {
                switch change {
                case .set(let stored): queries.store(stored, for: key, cost: stored.cost)
                case .removed, .forgotten, .elsewhere: queries.remove(key)
                }
            }
            for (key, change) in commit.edits { order.noteEdited(key, commit.order, change) }
            for key in commit.applied { order.noteApplied(key, commit.order) }
            for (key, change) in commit.overlays {
                entities.edit(key, change)
                // The acknowledged version may have been seen before.
                entities.endOverlays(key, version: entities[key]?.version)
            }
            for (key, change) in commit.queryOverlays { entities.edit(key, change) }
            // An assembly that is in progress looks at these keys again.
            let affected = changed.isEmpty ? [] : dependencies.nodes(madeOf: changed)
            for each in affected { each.node.note(changed: each.keys) }
            return affected
        }
    }

    func reportEvictions() { departures.tell(configuration.onEvent) }

    private func tell(_ commit: Commit) {
        reportEvictions()
        for affected in commit.affected { affected.node.contentChanged() }
        if commit.hasNewMarks { freshnessChanged() }
    }

    /// Tells all nodes that their freshness may have changed.
    func freshnessChanged() { for node in nodes.all { node.freshnessChanged() } }

    /// Judges the freshness of the observed values again. Their content stays assembled.
    func showAll() { for node in nodes.all { node.show() } }

    /// Closes the core: requests are cancelled, observations end, and nothing is written.
    func close() {
        owner.requireOutside("LarderCache.close")
        commits.withLock { _ in outboxCommits.withLock { _ in closed.store(true, ordering: .releasing) } }
        scheduler.close()
        for node in nodes.all { node.close() }
        nodes.removeAll()
        forget()
    }

    /// Whether the core is closed. Does not wait for a commit.
    var isClosed: Bool { closed.load(ordering: .acquiring) }

    private func forget() {
        memory.withLock { count in
            count += 1
            entities.removeAll()
            entities.removeAllOverlays()
            queries.removeAll()
        }
        invalidations.removeAll()
    }
}
