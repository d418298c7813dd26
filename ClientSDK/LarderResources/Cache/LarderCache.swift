import LarderEvents
public import LarderStorage
public import LarderTime
import Synchronization

/// The cache of one account. It reads resources by their policies, reports how fresh each value is, and shows every change to all
/// observers.
///
/// Several processes may open one directory. A process reads what another one has stored after at most
/// 100 ms, and at once when it changes the same value or sends from the outbox; its observers
/// are shown the change at its next read. Between processes the higher version of a value stays, and without versions the one that was
/// asked for last. Values that are only in memory belong to one process.
///
/// Safe from any task and thread. Releasing the cache closes it.
///
/// ```swift
/// let larder = try LarderCache(directory: "/var/tmp/larder-example")
/// let names = Resource<[String]>("names", freshness: .timeToLive(.seconds(60))) { _ in .value(["Ana", "Ben"]) }
///
/// print(try await larder.value(names))                        // ["Ana", "Ben"]; from memory for a minute
/// for await snapshot in larder.snapshots(names) {
///     print(snapshot.value ?? [], snapshot.freshness)         // whenever one of the two changes
/// }
/// ```
public final class LarderCache: Sendable {
    package let core: CacheCore
    /// The settings of the cache.
    public var configuration: CacheConfiguration { core.configuration }
    /// The operations that wait to be sent. Sending starts with `Outbox.resume`.
    public let outbox: Outbox

    /// Opens a cache, and creates it if it does not exist. Takes a few milliseconds, however much is stored.
    ///
    /// - Throws: `.storage` if the directory cannot be used. Damage is repaired and reported.
    public init(_ configuration: CacheConfiguration = CacheConfiguration()) throws(LarderError) {
        do { core = try CacheCore(configuration) } catch { throw LarderError(error) }
        outbox = try Outbox(core)
    }

    /// Opens a cache in a directory.
    public convenience init(directory: String) throws(LarderError) {
        try self.init(CacheConfiguration(.directory(directory)))
    }

    deinit { close() }

    // MARK: Reading

    /// Reads a value. A memory hit is returned on the caller's actor, without a change of threads; everything that may wait for the disk
    /// happens on threads of the cache.
    ///
    /// - Parameters:
    ///   - resource: the resource to read.
    ///   - policy: the read policy; nil: the resource's.
    ///   - fields: the sensitive fields that the reader uses: each may shorten the lifetime (`Freshness.Rule.fieldLifetimes`).
    /// - Throws: the error of the request, if the policy has nothing else to return, or if the stored value requires validation
    ///   (`Freshness.StaleReason.validationRequired`); `.notCached`, `.notValidated`, `.gone`, `.cancelled`.
    nonisolated(nonsending) public func value<Value>(
        _ resource: Resource<Value>,
        _ policy: ReadPolicy? = nil,
        fields: Set<String> = []
    ) async throws(LarderError) -> Value {
        let core = core
        let node = core.nodes.node(of: resource, in: core)
        var options = node.options(resource, policy, fields: fields)
        options.isBare = true
        let now = core.now()
        if core.isForeignCheckDue(at: now) { await core.reading { core.checkForeignCommits(at: now) } }
        if let value = node.atHand(options, at: now)?.value {
            core.configuration.onEvent(.hit(resource: resource.key.name, .memory, bytes: 0))
            return value
        }
        node.take(resource)
        let all = options
        guard let value = try await core.reading({ () async throws(LarderError) in try await node.read(all) }).value
        else {
            throw LarderError(.gone, "\"\(resource.key)\" does not exist.")
        }
        return value
    }

    /// Reads a value together with its freshness, times and source.
    ///
    /// - Throws: as `value`. The returned snapshot has a value.
    nonisolated(nonsending) public func snapshot<Value>(
        _ resource: Resource<Value>,
        _ policy: ReadPolicy? = nil,
        fields: Set<String> = []
    ) async throws(LarderError) -> Snapshot<Value> {
        let core = core
        let node = core.nodes.node(of: resource, in: core)
        let options = node.options(resource, policy, fields: fields)
        let now = core.now()
        if core.isForeignCheckDue(at: now) { await core.reading { core.checkForeignCommits(at: now) } }
        if let content = node.atHand(options, at: now) {
            core.configuration.onEvent(.hit(resource: resource.key.name, .memory, bytes: 0))
            return node.current(content, options, at: now)
        }
        node.take(resource)
        return try await core.reading { () async throws(LarderError) in try await node.read(options) }
    }

    /// Observes a resource for as long as the sequence is iterated. The table at `ReadPolicy` lists the snapshots of each policy.
    ///
    /// Snapshots are in order, never an older one after a newer one. A slow reader gets the newest one and not all. A snapshot without
    /// a change is left out. The sequence ends when its task is cancelled and when the cache is closed.
    public func snapshots<Value>(
        _ resource: Resource<Value>,
        _ policy: ReadPolicy? = nil,
        fields: Set<String> = []
    ) -> some AsyncSequence<Snapshot<Value>, Never> & Sendable {
        let node = core.nodes.node(of: resource, in: core)
        node.take(resource)
        return Snapshots(node: node, options: node.options(resource, policy, fields: fields))
    }

    /// A paged list for one reader.
    ///
    /// - Parameters:
    ///   - resource: the paged resource.
    ///   - policy: the read policy; nil: the resource's.
    ///   - readerIsAtTop: whether new items are inserted at once; see `Timeline.readerIsAtTop`, by which the app changes it.
    public func timeline<Item: CacheEntity>(
        _ resource: PagedResource<Item>,
        _ policy: ReadPolicy? = nil,
        readerIsAtTop: Bool = false
    ) -> Timeline<Item> {
        Timeline(resource, policy, readerIsAtTop: readerIsAtTop, core)
    }

    /// Asks the network, whatever is stored, as when a user pulls to refresh. It never joins an earlier request. After a 304 the stored
    /// value counts as validated now.
    ///
    /// - Throws: the error of the request. Observers keep the stored value.
    @discardableResult
    public func refresh<Value>(_ resource: Resource<Value>) async throws(LarderError) -> Snapshot<Value> {
        let node = core.nodes.node(of: resource, in: core)
        node.take(resource)
        let (options, since) = (node.options(resource), core.now().uptime)
        return try await core.reading { () async throws(LarderError) in try await node.refresh(since: since, options) }
    }

    /// A gate: returns a value that the server has confirmed within the time, and asks the server if necessary.
    ///
    /// - Parameters:
    ///   - resource: the resource to confirm.
    ///   - limit: counted from the start of the request that confirmed it. A write that demands the value rejects it when it is
    ///     older, so it must be longer than a request takes.
    /// - Throws: `.notValidated`, with a text for the user, if the value cannot be confirmed, and while it shows pending changes.
    public func requireValidated<Value>(
        _ resource: Resource<Value>,
        within limit: Duration
    ) async throws(LarderError) -> Validated<Value> {
        guard limit >= .zero else {
            throw LarderError(.invalidArgument, "The limit of a gate is negative: \(limit). Pass zero or more.")
        }
        let node = core.nodes.node(of: resource, in: core)
        node.take(resource)
        let options = node.options(resource)
        let snapshot = try await core.reading { () async throws(LarderError) in
            try await node.requireValidated(within: limit, options)
        }
        guard snapshot.pendingChanges == 0 else {
            throw LarderError(
                .notValidated,
                "\"\(resource.key)\" has changes that the server has not confirmed. Wait until they are sent, and try again."
            )
        }
        guard let validated = Validated(snapshot, within: limit, core) else {
            throw LarderError(.gone, "\"\(resource.key)\" was removed while it was being confirmed.")
        }
        return validated
    }

    // MARK: Changing

    /// Changes what is stored, in one commit. Every list and every observer shows the change when this returns.
    ///
    /// The change is stored on a thread of the cache, after other changes in progress. A change of a user that must be shown at once
    /// belongs in an operation (`enqueue`). Cost: some 20 µs for each changed value, whatever the length of the lists that contain it.
    ///
    /// - Parameter body: collects the changes; it is called at once, on the caller's actor.
    /// - Throws: `.storage`, `.encoding`, and what `body` throws as `.fetchFailed`. Then nothing has changed.
    nonisolated(nonsending) public func update(
        _ body: (inout CacheUpdate) throws -> Void
    ) async throws(LarderError) {
        try await self.update(isTolerant: false, body)
    }

    /// As `update(_:)`.
    ///
    /// - Parameter isTolerant: whether memory is changed although the disk fails, which is reported (`CacheEvent.storageFailed`).
    nonisolated(nonsending) package func update(
        isTolerant: Bool,
        _ body: (inout CacheUpdate) throws -> Void
    ) async throws(LarderError) {
        var update = CacheUpdate()
        do { try body(&update) } catch { throw LarderError(error) }
        let (core, changes) = (core, update)
        try await core.changing { () async throws(LarderError) in try core.commit(changes, isTolerant: isTolerant) }
    }

    /// As `update(isTolerant:_:)`, on the calling thread, which waits for changes in progress: for code that is on a thread of the cache
    /// already.
    package func updateBlocking(
        isTolerant: Bool = false,
        _ body: (inout CacheUpdate) throws -> Void
    ) throws(LarderError) {
        var update = CacheUpdate()
        do { try body(&update) } catch { throw LarderError(error) }
        try core.commit(update, isTolerant: isTolerant)
    }

    /// Stores a value as if the source of the resource had returned it: an event or a bundle has brought it. A request in flight does not
    /// replace it. `CacheUpdate.put(_:for:)` does it together with other changes.
    ///
    /// - Parameters:
    ///   - value: the value to store.
    ///   - resource: the resource that it belongs to.
    ///   - time: when it came from the source; nil: now.
    /// - Throws: `.storage`, `.encoding`; then nothing has changed.
    nonisolated(nonsending) public func put<Value>(
        _ value: Value,
        for resource: Resource<Value>,
        fetchedAt time: WallTime? = nil
    ) async throws(LarderError) {
        let now = core.now()
        let moment = time.map { now.before(max(.zero, now.wall - $0)) }
        var update = CacheUpdate()
        try update.put(value, for: resource)
        let (core, changes) = (core, update)
        try await core.changing { () async throws(LarderError) in try core.commit(changes, moment: moment) }
    }

    /// What is stored of a resource, without a request; nil if there is nothing.
    ///
    /// What is not in memory is read on the calling thread: some 10 µs for a value and 130 µs for a list of 50. It waits for a
    /// change in progress only if values are kept off the disk.
    public func stored<Value>(_ resource: Resource<Value>) -> Snapshot<Value>? {
        let node = core.nodes.node(of: resource, in: core)
        core.checkForeignCommits(at: core.now())
        let snapshot = node.current(node.content(), node.options(resource, .cacheOnly))
        return snapshot.value == nil ? nil : snapshot
    }

    /// Removes what is stored of a resource. The answer of a request in flight is not stored, and its callers get `.gone`.
    nonisolated(nonsending) public func remove<Value>(_ resource: Resource<Value>) async throws(LarderError) {
        try await update { $0.remove(resource.storedKey) }
    }

    /// Stores what the server has confirmed already, on a best-effort basis: a completed call must not fail because of a local error.
    ///
    /// If the disk fails the change is applied in memory. Every failure is reported as `CacheEvent.storageFailed`.
    nonisolated(nonsending) public func updateIfPossible(_ body: (inout CacheUpdate) -> Void) async {
        do throws(LarderError) { try await update(isTolerant: true, body) } catch {
            core.configuration.onEvent(.storageFailed(error))
        }
    }

    /// Puts an operation into the outbox: it is durable and shown when this returns. See `Outbox.enqueue`.
    @discardableResult
    public func enqueue<Input, Receipt>(
        _ input: Input,
        _ operation: WriteBehind<Input, Receipt>
    ) throws(LarderError) -> OperationID? {
        try outbox.enqueue(input, operation)
    }

    /// Sends a change to the server and waits for the result. The change is stored before its first byte is sent.
    ///
    /// - Throws: the error of a rejection; `.offline` or `.untrusted` if nothing was sent, and then nothing has changed; `.inDoubt` with the operation
    /// if the outcome is unknown, also because the cache was closed or erased meanwhile; `.conflict` with the operation while an earlier one
    /// of the scope is in doubt, or was rejected and blocks it (`WriteBehind.rejectionBlocksScope`); `.unregistered` while the first one of
    /// the scope is not registered; `.offline` also while the server has asked to delay the first one; `.paused` if the outbox is paused or
    /// was never resumed; `.cancelled` also if it was dropped before it was sent (`Outbox.drop`). What keeps a new write from being sent also
    /// ends one that waits behind others of its scope.
    public func commit<Input, Receipt>(
        _ input: Input,
        _ operation: WriteThrough<Input, Receipt>
    ) async throws(LarderError) -> Receipt {
        try await core.changing { () async throws(LarderError) in try await self.outbox.perform(input, operation) }
    }

    /// Sends a change that needs a validated value, and waits for the result. As `commit(_:_:)` otherwise.
    ///
    /// A retry of an operation in doubt does not need the value again: it is sent under the same key.
    ///
    /// - Parameters:
    ///   - input: the input of the operation.
    ///   - operation: the awaited write that demands the value.
    ///   - evidence: from `requireValidated` of this cache. It must not be older than its bound now.
    /// - Throws: as `commit(_:_:)`; `.notValidated` if `evidence` has expired, and then nothing was stored or sent; what the check of
    ///   the operation throws.
    public func commit<Input, Receipt, Evidence>(
        _ input: Input,
        _ operation: WriteThrough<Input, Receipt>.Gated<Evidence>,
        given evidence: Validated<Evidence>
    ) async throws(LarderError) -> Receipt {
        do { try operation.check(input, evidence.value) } catch { throw LarderError(error) }
        let (outbox, operation) = (outbox, operation.operation)
        return try await core.changing { () async throws(LarderError) in
            try await outbox.perform(input, operation) { core throws(LarderError) in try evidence.requireCurrent(core) }
        }
    }

    /// Invalidates a resource until it is fetched or confirmed again. An observed resource is refreshed at once.
    nonisolated(nonsending) public func invalidate<Value>(_ resource: Resource<Value>) async throws(LarderError) {
        try await update { $0.invalidate(resource.storedKey) }
    }

    /// Invalidates all values whose resource has the tag.
    nonisolated(nonsending) public func invalidate(tag: String) async throws(LarderError) {
        try await update { $0.invalidate(tag: tag) }
    }

    /// Invalidates all values and lists whose name, and all entities whose type, begins with a prefix.
    ///
    /// Cost: it reads the keys of all of them.
    ///
    /// - Parameters:
    ///   - prefix: of a name or a type, such as `article` for `article` and `articles/starred`.
    ///   - isChosen: which of them; of an entity it gets the key that `Resource.entity` has.
    nonisolated(nonsending) public func invalidate(
        startingWith prefix: String,
        where isChosen: (QueryKey) -> Bool = { _ in true }
    ) async throws(LarderError) {
        let core = core
        let keys = try await core.reading { () async throws(LarderError) in try core.keys(startingWith: prefix) }
        try await update { update in
            for key in keys {
                switch key {
                case .query(let key): if isChosen(key) { update.invalidate(key) }
                case .entity(let key):
                    if isChosen(QueryKey(key.type, [.init("id", key.id)])) { update.invalidate(key) }
                }
            }
        }
    }

    /// Notes that a version of an entity exists: an older stored value is stale, also after a restart and in other processes.
    ///
    /// An older version that a later reply brings is stale too, in this process: it remembers at least the last 8,192 versions. If older ones
    /// are forgotten, all values that were confirmed before are stale. A failure to store it is reported (`CacheEvent.storageFailed`).
    nonisolated(nonsending) public func noteVersion<E: CacheEntity>(_ version: Int64, of type: E.Type, _ id: E.ID) async
    {
        do throws(LarderError) {
            try await update(isTolerant: true) { $0.steps = [.noteVersion(E.key(id), version)] }
        } catch { core.configuration.onEvent(.storageFailed(error)) }
    }

    /// Notes that a change feed has no more changes now: by `Freshness.Criterion.feed` it covers values that were fetched since
    /// `since`. Nil: the feed is no longer followed.
    public func noteCaughtUp(_ feed: String, followedSince since: WallTime?) {
        noteCaughtUp(feed, followedSince: since, at: core.now())
    }

    /// As `noteCaughtUp`, when a reply has said so.
    ///
    /// - Parameter moment: when its request began.
    func noteCaughtUp(_ feed: String, followedSince since: WallTime?, at moment: Moment) {
        let coverage = since.map { FeedCoverage(since: $0, caughtUpUptime: moment.uptime) }
        core.invalidations.setFeed(feed, coverage)
        core.showAll()
    }

    /// Applies a change of `CacheConfiguration.networkBehavior`: freshness is computed again, and observers are shown the result.
    public func networkBehaviorChanged() {
        if core.applyNetworkBehavior() { core.showAll() }
    }

    /// Call it when the network is back: waiting operations are sent, stale observed values are refreshed, and live channels reconnect,
    /// all at once. `DegradationPolicy.resumeWindow` spreads the return of many clients.
    public func networkReturned() {
        core.returnCount.add(1, ordering: .relaxed)
        // Local changes are sent first, so that later reads contain them.
        outbox.clearDelays()
        for node in core.nodes.all { node.networkReturned() }
        core.returns.tell(())
    }
}
