package import LarderEvents
import LarderMemory
import LarderStorage
import LarderTime
import Synchronization

/// The shared engine of a cache: the tiers, the clocks, the stamps, and the nodes.
///
/// Safe from any thread. Locks are taken in this order: a commit, then the disk, then the store in memory, then memory; nodes' own last. No user code runs while
/// a lock is held, except functions of values and updates (`ChangeLock`), within a commit: if one of them changes the cache, the
/// process stops with a message.
package final class CacheCore: Sendable {
    /// Called when the network returns.
    package let returns = OrderedObservers<Void>()
    /// Called when the core is closed.
    private let ends = OrderedObservers<Void>()
    /// How often it has returned. A request that began before and fails says nothing about the network of now.
    let returnCount = Atomic<UInt64>(0)
    /// The tokens for reads that follow a failure.
    let readRetryBudget: Mutex<RetryPolicy.Budget>

    /// Lists, assembled values, and rows beside those on the disk may each take the memory of the entities divided by this, on top of it.
    static let listShare = 4

    let configuration: CacheConfiguration
    let disk: DiskStore?
    let memoryRows: MemoryRows
    let hidden = Mutex(HiddenRows())
    /// Whether the disk did not take a change, so that its rows may be older than those in memory.
    let lacksChanges = Atomic<Bool>(false)
    /// The store of the outbox: a database of its own, so that a change of the user never waits for a commit of content.
    let outboxDisk: DiskStore?
    let entities: MemoryTier<EntityKey, StoredEntity>
    private let entityBytesMaximum: Int
    let overlays = Overlays()
    let queries: MemoryTier<QueryKey, StoredQuery>
    let invalidations = InvalidationTable()
    let stamps: StampClock
    let rowless = RowlessStamps()
    let nodes: NodeRegistry
    let dependencies = DependencyIndex()
    /// The observers of local queries. They are told whether entities of a type have changed.
    let entityObservers = OrderedObservers<@Sendable (String) -> Bool>()
    let departures = EvictionTally()
    let clocks: ClockGuard
    /// Held during a commit. The value is what this process has stored about the clock.
    let commits = ChangeLock<SavedClock?>(nil)
    /// Held while operations are enqueued, coalesced, edited or removed.
    let outboxLock = ChangeLock(())
    /// Held while rows of the outbox are stored and the pending changes that they show are put into memory. Never while content is
    /// stored. The value is the number of the row that was stored last.
    let outboxCommits = ChangeLock<Int64>(0)
    /// The number of commits; locked while memory is changed.
    let memory = Mutex<UInt64>(0)
    /// The current lifetime factors, by the name of the freshness class.
    let stretches = Mutex<[String: Double]>([:])
    let hasStretches = Atomic<Bool>(false)
    let foreign = ForeignCommitMonitor()
    let isDiskTierOff = Atomic<Bool>(false)
    /// The keys that readers keep in memory only: nothing is written to the disk under them until the cache is closed.
    let memoryOnly = KeySet(countMaximum: 4_096)
    /// Whether bytes that were removed may still be in the disk's log.
    let hasRemovedBytes = Atomic<Bool>(false)
    let delayed: DelayedEvents
    /// Run the disk work of asynchronous functions (`reading`, `changing`); nil without a disk.
    let reads: DiskExecutor?
    let changes: DiskExecutor?
    /// Set within `commits`, so that no commit follows.
    private let closed = Atomic<Bool>(false)

    init(_ configuration: CacheConfiguration) throws {
        self.configuration = configuration
        readRetryBudget = Mutex(configuration.readRetryBudget)
        let onEvent = configuration.onEvent
        let delayed = DelayedEvents { [commits, outboxLock, outboxCommits] in
            commits.isHeldByCaller || outboxLock.isHeldByCaller || outboxCommits.isHeldByCaller
        }
        self.delayed = delayed
        switch configuration.storage {
        case .memory: disk = nil
        case .store(let store): disk = store
        case .disk(var settings):
            settings.clock = configuration.wallClock
            let onDiskEvent = settings.onEvent
            settings.onEvent = { event in
                delayed.tell {
                    onDiskEvent(event)
                    onEvent(.disk(event))
                }
            }
            disk = try DiskStore(settings)
        }
        // With a smaller limit a value could be evicted before its reader has it.
        let bytes = max(64 << 10, configuration.memoryBytesMaximum)
        let rows = DiskStore.Configuration.inMemory(
            bytesMaximum: Int64(disk == nil ? bytes : max(64 << 10, bytes / Self.listShare)),
            clock: configuration.wallClock
        )
        memoryRows = MemoryRows(try DiskStore(rows), isOnly: disk == nil)
        outboxDisk = try disk?.outboxStore()
        stamps = StampClock(configuration.stamps, outboxDisk, of: disk) { onEvent(.storageFailed($0)) }
        let mayBlock = disk?.configuration.mayBlock ?? false
        reads = mayBlock ? DiskExecutor(threadsMaximum: 4) : nil
        changes = mayBlock ? DiskExecutor(threadsMaximum: 4) : nil
        let entries = max(64, configuration.memoryEntriesMaximum)
        let departures = departures
        entityBytesMaximum = bytes
        entities = MemoryTier(limits: .init(count: entries, cost: bytes), onDeparture: { departures.note($0) })
        queries = MemoryTier(
            limits: .init(count: entries, cost: bytes / Self.listShare),
            onDeparture: { departures.note($0) }
        )
        nodes = NodeRegistry(countMaximum: max(1, entries / 4), costMaximum: bytes / Self.listShare)
        clocks = ClockGuard(configuration, stamps, invalidations)
        try restore()
        _ = applyNetworkBehavior()
    }

    /// Loads the tag invalidations from the store, and compares the clock with what it was.
    private func restore() throws {
        guard let disk else { return }
        isDiskTierOff.store(try disk.metadata(Self.diskTierKey) != nil, ordering: .releasing)
        try checkSettled()
        if let marks = try disk.metadata(InvalidationTable.metadataKey) {
            invalidations.merge(marks, present: stamps.next())
        }
        if try wasSetBack(disk) {
            invalidations.noteClockSetBack(at: stamps.next())
            clockWasSetBack()
        }
    }

    /// Closes the core: requests are cancelled, observations end, and nothing is written.
    func close() {
        commits.requireOutside("LarderCache.close")
        commits.withLock { _ in outboxCommits.withLock { _ in closed.store(true, ordering: .releasing) } }
        ends.tell(())
        for node in nodes.all { node.close() }
        // A query of a closed cache ends.
        entityObservers.tell { _ in true }
        nodes.removeAll()
        forget()
    }

    /// Runs a function in a task of its own, which is cancelled with the calling one and when the core is closed.
    func untilClosed(_ body: @escaping @Sendable () async -> Void) async {
        let task = Task { await body() }
        let registration = ends.add { _ in task.cancel() }
        if isClosed { task.cancel() }
        await withTaskCancellationHandler {
            await task.value
        } onCancel: {
            task.cancel()
        }
        withExtendedLifetime(registration) {}
    }

    /// Stores a decoded entity. One that exceeds the memory limit evicts all others and stays, so that the read that fetched it gets it.
    func keep(_ stored: StoredEntity, _ key: EntityKey) {
        entities.store(stored, for: key, cost: min(stored.cost, entityBytesMaximum))
    }

    /// Whether the disk has taken the last change.
    var takesChanges: Bool { !lacksChanges.load(ordering: .relaxed) }

    /// Whether the core is closed. Does not wait for a commit.
    var isClosed: Bool { closed.load(ordering: .acquiring) }

    private func forget() {
        memory.withLock { count in
            count += 1
            entities.removeAll()
            departures.keep(overlays.hideAll())
            queries.removeAll()
        }
        reportEvictions()
        reporting { try memoryRows.close() }
        invalidations.removeAll()
        rowless.removeAll()
        hidden.withLock { $0 = HiddenRows() }
    }
}
