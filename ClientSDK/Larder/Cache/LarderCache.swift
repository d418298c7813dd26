public import LarderTime
import Synchronization

/// A cache for one account: reads resources by their policies, says how fresh everything is, and lets everyone who looks at
/// something see every change to it.
///
/// Several processes may have one directory open. What one of them has stored the others read after at most
/// `CacheConfiguration.othersInterval`, and at once where they change the same or take the turn to send; who observes is shown it when
/// anything in their process reads. Between processes versions decide which of two values stays, and where there are none the one
/// that was stored last. What is in memory alone is each process's own.
///
/// Safe from any task and thread. A cache that is released ends what it has begun: requests are cancelled, observations end.
public final class LarderCache: Sendable {
    let core: CacheCore
    /// How the cache is kept.
    public var configuration: CacheConfiguration { core.configuration }
    /// Cached requests: any function, and it is cached. Recorded beside everything else, or in memory where there is no directory.
    public let requests: CachedRequests
    /// What was promised to be sent. It begins to be sent with `Outbox.resume`.
    public let outbox: Outbox

    /// Opens a cache, and makes it if it is not there. Cost: a few milliseconds, however much is stored.
    ///
    /// - Throws: `.storage` where the directory cannot be used. Damage is repaired and reported.
    public init(_ configuration: CacheConfiguration = CacheConfiguration()) throws(LarderError) {
        let core = try CacheCore(configuration)
        self.core = core
        outbox = try Outbox(core)
        let storage: any RequestStorage = core.disk.map { DiskRequestStorage($0) } ?? MemoryRequestStorage()
        requests = CachedRequests(
            storage: storage,
            clock: configuration.wallClock,
            onStorageError: { configuration.onEvent(.storageFailed(LarderError($0))) }
        )
    }

    /// Opens a cache in a directory.
    public convenience init(directory: String) throws(LarderError) {
        try self.init(CacheConfiguration(directory: directory))
    }

    deinit {
        outbox.close()
        core.close()
    }

    // MARK: Reading

    /// Reads a value. What memory has is given on the caller's actor, without a change of threads.
    ///
    /// - Parameters:
    ///   - policy: how the read goes about it; nil: as the resource says.
    ///   - fields: the sensitive fields that the reader uses: each may shorten the time to live (`FreshnessRule.fieldLifetimes`).
    /// - Throws: what the network failed with, where the policy has nothing else to give; `.notCached`, `.gone`, `.cancelled`.
    nonisolated(nonsending) public func value<Value>(
        _ resource: Resource<Value>,
        _ policy: ReadPolicy? = nil,
        fields: Set<String> = []
    ) async throws(LarderError) -> Value {
        let node = node(of: resource)
        let options = node.options(resource, policy, fields: fields)
        let now = core.now()
        core.lookForOthers(at: now)
        if let value = node.valueAtHand(options, at: now) {
            core.configuration.onEvent(.hit(resource: resource.key.name, .memory, bytes: 0))
            return value
        }
        node.take(resource)
        guard let value = try await node.read(options).value else {
            throw LarderError(.gone, "There is no «\(resource.key)».")
        }
        return value
    }

    /// Reads a value, and what is known of it.
    ///
    /// - Throws: as `value`. A snapshot that this returns has a value.
    nonisolated(nonsending) public func snapshot<Value>(
        _ resource: Resource<Value>,
        _ policy: ReadPolicy? = nil,
        fields: Set<String> = []
    ) async throws(LarderError) -> Snapshot<Value> {
        let node = node(of: resource)
        let options = node.options(resource, policy, fields: fields)
        let now = core.now()
        core.lookForOthers(at: now)
        if let content = node.atHand(options, at: now) {
            core.configuration.onEvent(.hit(resource: resource.key.name, .memory, bytes: 0))
            return node.snapshot(atHand: content, options, at: now)
        }
        node.take(resource)
        return try await node.read(options)
    }

    /// What there is and what becomes of it, for as long as somebody iterates: the table at `ReadPolicy` says what comes when.
    ///
    /// Snapshots come in order, and never an older one after a newer; whoever is slow gets the newest and not all. A snapshot
    /// that says nothing new is left out. The sequence ends when its task is cancelled and when the cache is closed.
    public func snapshots<Value>(
        _ resource: Resource<Value>,
        _ policy: ReadPolicy? = nil,
        fields: Set<String> = []
    ) -> Snapshots<Value> {
        let node = node(of: resource)
        node.take(resource)
        return Snapshots(node: node, options: node.options(resource, policy, fields: fields))
    }

    /// The node of a resource, which knows from now on what this resource says about the value.
    private func node<Value>(of resource: Resource<Value>) -> Node<Value> {
        let node = core.nodes.node(of: resource, in: core)
        node.admit(resource)
        return node
    }

    /// Asks the network, whatever is stored, as when a user pulls to refresh. It never joins a request that was sent before, and
    /// where the server says «not modified» the stored value counts as confirmed now.
    ///
    /// - Throws: what the network failed with. Observers go on seeing what there was.
    @discardableResult
    public func refresh<Value>(_ resource: Resource<Value>) async throws(LarderError) -> Snapshot<Value> {
        let node = node(of: resource)
        node.take(resource)
        return try await node.refresh(since: core.now().uptime, node.options(resource))
    }

    /// A gate: gives a value that the server has confirmed within the time, asking it if need be.
    ///
    /// - Parameter limit: counted from the start of the request that confirmed it.
    /// - Throws: `.notValidated`, with a text for the user, where it was not and cannot be confirmed.
    public func requireValidated<Value>(
        _ resource: Resource<Value>,
        within limit: Duration
    ) async throws(LarderError) -> Snapshot<Value> {
        guard limit >= .zero else {
            throw LarderError(.invalidArgument, "A gate cannot demand less than no time; \(limit) was given.")
        }
        let node = node(of: resource)
        node.take(resource)
        return try await node.requireValidated(within: limit, node.options(resource))
    }

    // MARK: Anything

    /// Runs any asynchronous function with a cache: `CachedRequests.request`.
    ///
    /// - Throws: `.notCached`, or what the function failed with.
    public func request<Value: Codable & Sendable>(
        _ name: String,
        _ parameters: [String: String] = [:],
        as type: Value.Type = Value.self,
        strategy: RequestStrategy = .cacheElseLoad,
        lifetime: Duration = CachedRequests.standardLifetime,
        load: @escaping @Sendable () async throws -> Value
    ) async throws(LarderError) -> Value {
        try await requests.request(
            name,
            parameters,
            as: type,
            strategy: strategy,
            lifetime: lifetime,
            load: load
        ).value
    }

    // MARK: Changing

    /// Changes what is stored: all of it or nothing, in one commit. Every list and every observer shows it when this returns.
    ///
    /// - Throws: `.storage`, `.encoding`, and what `body` throws as `.fetchFailed`. Then nothing has changed.
    public func update(_ body: (inout Update) throws -> Void) throws(LarderError) {
        var update = Update()
        do { try body(&update) } catch { throw LarderError(error) }
        try core.commit(update)
    }

    /// Stores what the server has confirmed already, as far as that is possible: a completed call must not fail because of it.
    ///
    /// Where the disk fails, memory shows it all the same. Every failure is reported as `CacheEvent.storageFailed`.
    public func updateIfPossible(_ body: (inout Update) -> Void) {
        var update = Update()
        body(&update)
        do { try core.commit(update, isTolerant: true) } catch { core.configuration.onEvent(.storageFailed(error)) }
    }

    /// Puts a change into the outbox: it is durable and shown when this returns. `Outbox.enqueue`.
    @discardableResult
    public func enqueue<Input, Receipt>(
        _ input: Input,
        _ operation: WriteBehind<Input, Receipt>
    ) throws(LarderError) -> OperationID? {
        try outbox.enqueue(input, operation)
    }

    /// Has a change carried out by the server, and waits for that. It is stored before its first byte leaves.
    ///
    /// - Throws: what it was refused with; `.offline` where it certainly was not sent, and then nothing has changed; `.inDoubt` with
    ///   the operation where nobody knows yet; `.conflict` while an older one of its scope is in doubt.
    public func commit<Input, Receipt>(
        _ input: Input,
        _ operation: WriteThrough<Input, Receipt>
    ) async throws(LarderError) -> Receipt {
        try await outbox.perform(input, operation)
    }

    /// Declares a resource stale, until it is fetched or confirmed again. Where it is observed, that happens at once.
    public func invalidate<Value>(_ resource: Resource<Value>) throws(LarderError) {
        try update { update in
            if let entity = resource.shape.entity {
                update.invalidate(entity)
            } else {
                update.invalidate(resource.key)
            }
        }
    }

    /// Declares everything stale whose resource has the tag.
    public func invalidate(tag: String) throws(LarderError) { try update { $0.invalidate(tag: tag) } }

    /// Declares those stored values and lists stale whose key is chosen.
    ///
    /// Cost: it looks at the keys of all of that name.
    public func invalidate(named name: String, where isChosen: (QueryKey) -> Bool = { _ in true }) throws(LarderError) {
        var keys = Set(core.queries.keys).union(core.nodes.all.map(\.key)).filter { $0.name == name }
        if let disk = core.disk {
            do {
                keys.formUnion(try disk.read { transaction in try transaction.queryKeys(named: name) })
                keys.formUnion(
                    try disk.read { transaction in try transaction.entityIDs(ofType: "=" + name) }
                        .compactMap { QueryKey(name: name, canonicalParameters: $0) }
                )
            } catch {
                throw LarderError(error)
            }
        }
        let chosen = keys.filter(isChosen)
        try update { update in for key in chosen { update.invalidate(key) } }
    }

    /// Notes that an entity has a version that may not have come yet: by `FreshnessMetric.version` what is older is stale.
    public func noteVersion<E: Entity>(_ version: Int64, of type: E.Type, _ id: String) {
        if core.invalidations.note(E.key(id), version: version, at: core.now().wall) { return core.standingChanged() }
        for affected in core.dependencies.nodes(madeOf: [.entity(E.key(id))]) { affected.node.standingChanged() }
    }

    /// Notes that a change feed had no more changes at `moment`: by `FreshnessMetric.feed` it vouches for what was fetched since
    /// it began to be followed. Nil: it is not followed any more.
    public func noteCaughtUp(_ feed: String, followedSince since: WallTime?) {
        let now = core.now()
        let coverage = since.map {
            FeedCoverage(since: $0, caughtUpAt: now.wall, caughtUpUptime: now.uptime, epoch: now.epoch)
        }
        core.invalidations.setFeed(feed, coverage)
        core.standingChanged()
    }

    /// Tells that `CacheConfiguration.conduct` gives something else than before: what depends on it is judged anew, and shown.
    public func conductChanged() {
        if core.takeConduct() { core.standingChanged() }
    }

    /// Tells that the network can be asked again: what waits is sent, what is observed and stale is refreshed, and what changes
    /// elsewhere is followed again, all at once. `NetworkMonitor.resumes` says when many clients may do so without coming together.
    public func networkReturned() {
        // What was changed here goes first: what is read afterwards has it.
        outbox.hurry()
        for node in core.nodes.all { node.networkReturned() }
        core.returns.tell(())
    }

    // MARK: Keeping

    /// Does a small, bounded part of what is to be done in the background: removes what is outdated, gives pages back. Call it
    /// until it is done, when nothing else is to be done.
    public func maintain() throws(LarderError) -> DiskMaintenance {
        guard let disk = core.disk else { return DiskMaintenance() }
        do { return try disk.maintain() } catch { throw LarderError(error) }
    }

    /// Gives memory back: keeps no more than so many bytes of what was read. What is observed stays.
    public func trimMemory(toBytes bytes: Int) {
        core.entities.trim(toCost: max(0, bytes))
        core.queries.trim(cost: max(0, bytes))
        core.nodes.trim(toCount: bytes > 0 ? 64 : 0)
        core.tellDepartures()
    }

    /// What memory holds of the entities that were read, in bytes.
    public var memoryCost: Int { core.entities.cost }

    /// How many reads of entities memory has answered, and how many not.
    public var memoryHits: (hits: Int, misses: Int) {
        let statistics = core.entities.statistics
        return (statistics.hits, statistics.misses)
    }

    /// The disk tier; nil where the cache is in memory only.
    public var disk: DiskStore? { core.disk }

    /// Ends everything: requests are cancelled, observations end, later calls throw `.closed`. What is stored stays.
    public func close() {
        outbox.close()
        core.close()
    }

    /// Closes the cache, and removes everything that it has stored. What is still on its way cannot bring it back.
    ///
    /// - Throws: `.storage` where files could not be removed.
    public func erase() throws(LarderError) {
        close()
        do { try core.disk?.erase() } catch { throw LarderError(error) }
    }
}
