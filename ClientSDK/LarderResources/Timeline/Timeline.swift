public import LarderStorage
import LarderTime
import Synchronization

/// A paged list for one reader: stored items at once, refreshed by one page, extended page by page, with gaps where items may be
/// missing, and with new items held back until the reader takes them.
///
/// Readers of one resource share the stored list and requests; held-back items belong to one reader. Safe from any task.
public final class Timeline<Item: CacheEntity>: Sendable {
    let engine: TimelineEngine<Item>
    let options: ReadOptions
    private struct State {
        var reader: TimelineReader<Item>
        var wakers: [UInt64: @Sendable () -> Void] = [:]
        var lastWaker: UInt64 = 0
    }
    private let state: Mutex<State>

    init(_ engine: TimelineEngine<Item>, _ options: ReadOptions, holdsBackNew: Bool) {
        self.engine = engine
        self.options = options
        state = Mutex(State(reader: TimelineReader(holdsBack: holdsBackNew)))
    }

    /// The key of the list in the store.
    public var key: QueryKey { engine.node.key }

    // MARK: Reading

    /// Observes the list for as long as the sequence is iterated. The first snapshot has the stored items, before any request.
    ///
    /// Snapshots are in order; a slow reader gets the newest one and not all, and a snapshot without a change is left out. The sequence
    /// ends when its task is cancelled and when the cache is closed.
    public var snapshots: Timeline<Item>.Snapshots { Timeline<Item>.Snapshots(self) }

    /// Reads the list by the policy: with `staleWhileRevalidate` the stored list, if there is one.
    ///
    /// - Throws: the error of the request if nothing is stored; `.notCached`, `.cancelled`.
    public func snapshot() async throws(LarderError) -> Timeline<Item>.Snapshot {
        let now = engine.core.now()
        engine.core.checkForeignCommits(at: now)
        if let content = engine.node.atHand(options, at: now) {
            return view(engine.node.snapshot(atHand: content, options, at: now))
        }
        let (node, options) = (engine.node, options)
        return view(try await engine.core.reading { () async throws(LarderError) in try await node.read(options) })
    }

    /// Fetches the newest page, whatever is stored, and merges it by overlap. Costs one page or a 304.
    ///
    /// - Parameter separation: what to do with older items that the page does not overlap; nil: the resource's policy.
    /// - Throws: the error of the request. The shown items stay.
    public func refresh(onDiscontinuity separation: GapPolicy? = nil) async throws(LarderError) {
        let isReset = separation == .reset
        if isReset { engine.core.resets.begin(key) }
        defer { if isReset { engine.core.resets.end(key) } }
        let (node, options, since) = (engine.node, options, engine.core.now().uptime)
        _ = try await engine.core.reading { () async throws(LarderError) in
            try await node.refresh(since: since, options)
        }
    }

    /// Fetches the page after the last item.
    ///
    /// After a failure the next request waits as reads do, with jitter and not before `Retry-After`; until then this throws the error
    /// of the last request, with the wait in `retryAfter`.
    ///
    /// - Parameter isUserInitiated: whether a person has asked for another attempt: it is made at once.
    /// - Returns: whether there are more items.
    /// - Throws: the error of the request. The shown items stay.
    @discardableResult
    public func loadOlder(isUserInitiated: Bool = false) async throws(LarderError) -> Timeline<Item>.Progress {
        let before = engine.node.content().value
        guard let before, before.tail != .unknown else {
            try await refresh()
            return progress(.tail)
        }
        guard before.tail != .end else { return .finished }
        guard before.items.count < engine.resource.keptMaximum else { return .full }
        try await engine.load(.tail, isUserInitiated: isUserInitiated)
        return progress(.tail)
    }

    /// Fetches the next page of a gap, from its newer end.
    ///
    /// - Parameter isUserInitiated: as for `loadOlder`.
    /// - Returns: whether the gap is still there. A gap that was closed meanwhile costs no request.
    /// - Throws: the error of the request. The shown items stay.
    @discardableResult
    public func fill(
        _ gap: Timeline<Item>.Gap,
        isUserInitiated: Bool = false
    ) async throws(LarderError) -> Timeline<Item>.Progress {
        guard progress(gap.place) == .more else { return .finished }
        try await engine.load(gap.place, isUserInitiated: isUserInitiated)
        return progress(gap.place)
    }

    private func progress(_ place: TimelinePlace) -> Timeline<Item>.Progress {
        let list = engine.node.content().value
        if place == .tail { return list?.tail == .end ? .finished : .more }
        return list?.gaps.contains { $0.place == place } ?? false ? .more : .finished
    }

    /// Shows the held-back items in the next snapshot. Returns their number.
    @discardableResult
    public func showHeldBack() -> Int {
        let (count, wakers) = state.withLock { ($0.reader.showHeldBack(), Array($0.wakers.values)) }
        for waker in wakers { waker() }
        return count
    }

    /// Inserts a new item at the front, as for an event. `CacheUpdate.insertNewest` does it together with other changes.
    ///
    /// - Parameter isOwn: whether it was created on this device: it is then shown at once.
    /// - Throws: `.storage`, `.encoding`; then nothing has changed.
    public func insertNewest(_ item: Item, isOwn: Bool = false) throws(LarderError) {
        var update = CacheUpdate()
        update.answered = engine.node.storedKey
        update.insertNewest(item, in: key, isOwn: isOwn)
        try engine.core.commit(update)
    }

    // MARK: Views

    func view(_ snapshot: LarderResources.Snapshot<Timeline<Item>.List>) -> Timeline<Item>.Snapshot {
        let paging = engine.paging
        return state.withLock { $0.reader.view(of: snapshot, paging.fetching, paging.errors) }
    }

    func wake(_ waker: @escaping @Sendable () -> Void) -> UInt64 {
        state.withLock { state in
            state.lastWaker += 1
            state.wakers[state.lastWaker] = waker
            return state.lastWaker
        }
    }

    func removeWaker(_ id: UInt64) { state.withLock { $0.wakers[id] = nil } }
}

extension Timeline {
    /// The progress of a timeline after a page.
    public enum Progress: String, Sendable, Hashable {
        /// There are more items.
        case more
        /// The end is reached, or the gap is closed.
        case finished
        /// The list has the maximum size (`PagedResource.itemsMaximum`): nothing was requested.
        case full
    }
}
