import LarderTime
import Synchronization

/// What all parts of a cache share: the tiers, the clocks, the order of requests, and who shows what.
///
/// Safe from any thread. Locks are taken in this order: a commit, then the disk, then memory; nodes' own last. Nothing of a
/// user's is called while one is held, except within a commit the functions that `ChangeOwner.Function` lists: one of them that
/// changes the cache is stopped with a message.
final class CacheCore: Sendable {
    /// Told when the network can be asked again.
    let returns = OrderedObservers<Void>()
    private struct Commits {
        var savedHighWater: WallTime
    }

    /// What is stored without a lifetime is outdated after so long.
    static let longestLifetime: Duration = .seconds(30 * 86_400)
    private static let clockKey = "larder.clock"

    let configuration: CacheConfiguration
    let disk: DiskStore?
    let entities: EntityTable
    let queries: MemoryTier<QueryKey, StoredQuery>
    let invalidations = InvalidationTable()
    let order = RequestOrder()
    let nodes: NodeRegistry
    let dependencies = DependencyIndex()
    let scheduler: RefreshScheduler
    let timelines = TimelineRegistry()
    private let departures = DepartureTally()
    private let clocks: ClockGuard
    private let commits: Mutex<Commits>
    /// How many commits there were; taken whenever memory is changed.
    private let memory = Mutex<UInt64>(0)
    private let distrusts = Atomic<Bool>(false)
    /// By what times to live are multiplied at present, by the name of the freshness class.
    let stretches = Mutex<[String: Double]>([:])
    let hasStretches = Atomic<Bool>(false)
    let foreign = ForeignWatch()
    /// What readers keep off the disk.
    let memoryOnly = MemoryOnlyKeys()
    /// The thread that holds `commits`.
    let owner: ChangeOwner
    /// The thread that holds the outbox's gate.
    let gateOwner: ChangeOwner
    let delayed: DelayedEvents
    /// Set within `commits`, so that no commit follows.
    private let closed = Atomic<Bool>(false)

    init(_ configuration: CacheConfiguration) throws(LarderError) {
        self.configuration = configuration
        let onEvent = configuration.onEvent
        let (owner, gateOwner, delayed) = (ChangeOwner(), ChangeOwner(), DelayedEvents())
        (self.owner, self.gateOwner, self.delayed) = (owner, gateOwner, delayed)
        if let store = configuration.store {
            disk = store
        } else if let directory = configuration.directory {
            var settings = configuration.disk
            settings.directory = directory
            settings.clock = configuration.wallClock
            let onDiskEvent = settings.onEvent
            settings.onEvent = { event in
                let tell = { @Sendable in
                    onDiskEvent(event)
                    onEvent(.disk(event))
                }
                if owner.isCaller || gateOwner.isCaller { delayed.add(tell) } else { tell() }
            }
            do { disk = try DiskStore(settings) } catch { throw LarderError(error) }
        } else {
            disk = nil
        }
        let clock = configuration.monotonicClock
        // With less a value would be gone before its reader has it.
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
        scheduler = RefreshScheduler(clock: clock, sleeper: configuration.sleeper)
        clocks = ClockGuard(wall: configuration.wallClock, monotonic: clock)
        commits = Mutex(Commits(savedHighWater: .init(nanosecondsSinceEpoch: .min)))
        try restore()
        _ = takeConduct()
    }

    /// Takes over what another process has left: what was declared stale, and the time that it saw last.
    private func restore() throws(LarderError) {
        guard let disk else { return }
        do {
            let (marks, clock) = try disk.read { transaction in
                (
                    try transaction.metadata(InvalidationTable.metadataKey),
                    try transaction.metadata(Self.clockKey)
                )
            }
            if let marks { invalidations.merge(marks) }
            guard let clock, let seen = Int64(String(decoding: clock, as: UTF8.self)) else { return }
            let latest = WallTime(nanosecondsSinceEpoch: seen)
            if configuration.wallClock.now < latest - Moment.tolerance { distrust() }
        } catch {
            throw LarderError(error)
        }
    }

    // MARK: Time

    /// The present moment. Not called while a node is locked.
    func now() -> Moment {
        let (moment, wasSetBack) = clocks.read()
        if wasSetBack { distrust() }
        return moment
    }

    /// Whether what comes from the disk has times that say nothing, and that is not noted there yet.
    var isDistrusted: Bool { distrusts.load(ordering: .relaxed) }

    /// The clock was set back: nothing that was confirmed before has a known age.
    private func distrust() {
        distrusts.store(true, ordering: .relaxed)
        configuration.onEvent(.clockSetBack)
        noteDistrust()
        scheduler.lookAtAll()
    }

    private func noteDistrust() {
        guard let disk, isDistrusted else { return }
        let seen = clocks.highWater
        do {
            try disk.write { transaction in
                try transaction.distrustTimes()
                try transaction.setMetadata(Self.encode(seen), for: Self.clockKey)
            }
            distrusts.store(false, ordering: .relaxed)
        } catch {
            // Until it succeeds, everything that comes from the disk counts as uncertain.
            configuration.onEvent(.storageFailed(LarderError(error)))
        }
    }

    private static func encode(_ time: WallTime) -> [UInt8] { Array("\(time.nanosecondsSinceEpoch)".utf8) }

    // MARK: Reading

    /// An entity as the server said, and whether it was read from the disk for that.
    func entity(_ key: EntityKey, _ decode: StoredEntityDecoder) -> (stored: StoredEntity, isFromDisk: Bool)? {
        if let stored = entities[key] { return (stored, false) }
        guard let disk else { return nil }
        let sight = sight
        let count = memory.withLock { $0 }
        do {
            guard let row = try disk.entity(key) else { return nil }
            let value: any Sendable
            do { value = try decode(row.payload) } catch {
                // It stays: it may be a value of another type, or of a newer version of the application.
                throw LarderError(
                    .storage,
                    "What is stored under \"\(key)\" cannot be read as the type that was asked for: \(error). It stays as it is. Read it "
                        + "as the type that it was stored as, or fetch it again.",
                    cause: error
                )
            }
            let stored = StoredEntity(
                row,
                value: value,
                epoch: now().epoch,
                isDistrusted: isDistrusted,
                sight: sight
            )
            fill(stored, key, ifNothingSince: count)
            tellDepartures()
            return (stored, true)
        } catch {
            configuration.onEvent(.storageFailed(LarderError(error)))
            return nil
        }
    }

    /// A query index, with the entities that came along if it had to be read from the disk.
    func query(_ key: QueryKey) -> (stored: StoredQuery, rows: [EntityKey: DiskEntity]?)? {
        if let stored = knownQuery(key) { return (stored, nil) }
        guard let disk else { return nil }
        let sight = sight
        let count = memory.withLock { $0 }
        do {
            guard let list = try disk.list(key) else { return nil }
            let stored = StoredQuery(list.query, epoch: now().epoch, isDistrusted: isDistrusted, sight: sight)
            memory.withLock { present in
                if present == count { queries.store(stored, for: key, cost: stored.cost) }
            }
            var rows: [EntityKey: DiskEntity] = [:]
            for row in list.entities { if let row { rows[row.key] = row } }
            tellDepartures()
            return (stored, rows)
        } catch {
            configuration.onEvent(.storageFailed(LarderError(error)))
            return nil
        }
    }

    /// A query index, if it is in memory, and no other process has changed the disk since.
    func knownQuery(_ key: QueryKey) -> StoredQuery? {
        guard let stored = queries[key] else { return nil }
        return stored.sight >= sight ? stored : nil
    }

    /// Keeps in memory what was read from the disk, unless something has changed meanwhile.
    func fill(_ stored: StoredEntity, _ key: EntityKey, ifNothingSince count: UInt64) {
        memory.withLock { present in
            if present == count { entities.store(stored, for: key) }
        }
    }

    /// How many commits there were. What was put together between two equal counts is of one moment.
    var commitCount: UInt64 { memory.withLock { $0 } }

    // MARK: Writing

    /// Carries out an update, and tells everyone who shows any of it.
    ///
    /// - Parameters:
    ///   - order: the place of the request that it is the answer to; nil for what has just happened.
    ///   - isTolerant: whether memory is changed also where the disk fails, which is reported.
    func commit(
        _ update: Update,
        order answered: UInt64? = nil,
        moment: Moment? = nil,
        isTolerant: Bool = false
    ) throws(LarderError) {
        defer { delayed.deliver() }
        announce(try carryOut(update, order: answered, moment: moment, isTolerant: isTolerant))
    }

    /// Carries out an update, and tells nobody yet: `announce` has to follow, outside of all locks.
    func carryOut(
        _ update: Update,
        order answered: UInt64? = nil,
        moment: Moment? = nil,
        isTolerant: Bool = false
    ) throws(LarderError) -> Commit {
        owner.requireOutside("A change to the cache")
        let moment = moment ?? now()
        let order = answered ?? self.order.now()
        let start = Commit(core: self, order: order, moment: moment, isAnswer: answered != nil)
        do {
            return try commits.withLock { commits in
                owner.begin()
                defer { owner.end() }
                guard !isClosed else { throw LarderError(.closed, "The cache was closed or erased.") }
                var commit = try perform(update, start, &commits, isTolerant: isTolerant)
                commit.affected = apply(commit)
                return commit
            }
        } catch {
            throw LarderError(error)
        }
    }

    /// Tells everyone who shows any of what was changed.
    func announce(_ commit: Commit) {
        delayed.deliver()
        if isDistrusted { noteDistrust() }
        for problem in commit.problems { configuration.onEvent(.storageFailed(problem)) }
        tell(commit)
        heedOthers()
    }

    private func perform(
        _ update: Update,
        _ start: Commit,
        _ commits: inout Commits,
        isTolerant: Bool
    ) throws -> Commit {
        func inMemory() throws -> Commit {
            var commit = start
            commit.isMemoryOnly = update.isMemoryOnly || update.answered.map { memoryOnly.contains($0) } ?? false
            try commit.perform(update.steps, DiskPart(connection: nil))
            return commit
        }
        // Asked here, where no reader can come in between that keeps it off the disk.
        let isOffDisk = update.isMemoryOnly || update.answered.map { memoryOnly.contains($0) } ?? false
        guard let disk, !isOffDisk else { return try inMemory() }
        let seen = clocks.highWater
        let isTimeToSave = seen - commits.savedHighWater > .seconds(60)
        do {
            let commit = try disk.write(mayUseReserve: update.mayUseReserve) { transaction in
                var commit = start
                // Up to here what others have done is known.
                commit.sight = sight
                try commit.perform(update.steps, DiskPart(connection: transaction.connection))
                if commit.hasNewMarks {
                    // Those of others are kept.
                    let key = InvalidationTable.metadataKey
                    if let marks = try transaction.read({ reading in try reading.metadata(key) }) {
                        invalidations.merge(marks)
                    }
                    try transaction.setMetadata(invalidations.encoded, for: InvalidationTable.metadataKey)
                }
                if isTimeToSave { try transaction.setMetadata(Self.encode(seen), for: Self.clockKey) }
                return commit
            }
            if isTimeToSave { commits.savedHighWater = seen }
            return commit
        } catch let error as DiskError where isTolerant {
            var commit = try inMemory()
            commit.note(LarderError(error))
            return commit
        }
    }

    /// - Returns: those who are to be told.
    private func apply(_ commit: Commit) -> [DependencyIndex.Affected] {
        let changed = commit.changed
        return memory.withLock { count in
            count += 1
            for (key, change) in commit.entities {
                switch change {
                case .set(let stored):
                    entities.store(stored, for: key)
                    entities.settle(key, version: stored.version)
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
                // What was acknowledged may have been seen before.
                entities.settle(key, version: entities[key]?.version)
            }
            for (key, change) in commit.queryOverlays { entities.edit(key, change) }
            // Whoever puts something together of the time before knows by that what to look at again.
            let affected = changed.isEmpty ? [] : dependencies.nodes(madeOf: changed)
            for each in affected { each.node.note(changed: each.keys) }
            return affected
        }
    }

    /// Tells of what has left the memory by itself.
    func tellDepartures() { departures.tell(configuration.onEvent) }

    private func tell(_ commit: Commit) {
        tellDepartures()
        for affected in commit.affected { affected.node.contentChanged() }
        if commit.hasNewMarks { standingChanged() }
    }

    /// Something that many things depend on has changed.
    func standingChanged() { for node in nodes.all { node.standingChanged() } }

    // MARK: The end

    /// Ends everything: requests are cancelled, observations end, nothing is written any more.
    func close() {
        owner.requireOutside("LarderCache.close")
        commits.withLock { _ in closed.store(true, ordering: .releasing) }
        scheduler.close()
        for node in nodes.all { node.close() }
        timelines.close()
        nodes.removeAll()
        forget()
    }

    /// Whether everything has ended. It does not wait for a commit.
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
