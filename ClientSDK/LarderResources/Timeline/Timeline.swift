public import LarderStorage
import LarderTime
import Synchronization

/// A paged list for one reader: stored items at once, refreshed by one page, extended page by page, with gaps where items may be
/// missing, and with new items held back until the reader takes them.
///
/// Readers of one resource share the stored list and requests; held-back items belong to one reader. Safe from any task.
///
/// ```swift
/// let feed = PagedResource<Article>("feed") { try await client.source.page("/feed", $0, by: .links()) }
/// let timeline = larder.timeline(feed)
/// for await snapshot in timeline.snapshots {
///     print(snapshot.items.map(\.title), snapshot.heldBackCount, "new above")
///     if !snapshot.hasReachedEnd { _ = try await timeline.loadOlder() }
/// }
/// ```
public final class Timeline<Item: CacheEntity>: Sendable {
    let engine: TimelineEngine<Item>
    let options: ReadOptions
    private struct State {
        var reader: TimelineReader<Item>
        var wakers: [UInt64: @Sendable () -> Void] = [:]
        var lastWaker: UInt64 = 0
        /// The item at which the list was opened.
        var anchor: String?
    }
    private let state: Mutex<State>

    init(_ engine: TimelineEngine<Item>, _ options: ReadOptions, readerIsAtTop: Bool) {
        self.engine = engine
        self.options = options
        state = Mutex(State(reader: TimelineReader(isAtTop: readerIsAtTop)))
    }

    /// The key of the list in the store.
    public var key: QueryKey { engine.node.key }

    // MARK: Reading

    /// Observes the list for as long as the sequence is iterated. The first snapshot has the stored items, before any request.
    ///
    /// Snapshots are in order; a slow reader gets the newest one and not all, and a snapshot without a change is left out. The sequence
    /// ends when its task is cancelled and when the cache is closed.
    public var snapshots: some AsyncSequence<Timeline<Item>.Snapshot, Never> & Sendable {
        Timeline<Item>.Snapshots(self)
    }

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
    /// - Parameter isDropping: drops the items behind a gap after the refresh, also if the resource keeps them
    ///   (`PagedResource.dropsBehindGap`).
    /// - Throws: the error of the request. The shown items stay.
    public func refresh(droppingBehindGap isDropping: Bool = false) async throws(LarderError) {
        let (node, options, since) = (engine.node, options, engine.core.now().uptime)
        _ = try await engine.core.reading { () async throws(LarderError) in
            try await node.refresh(since: since, options)
        }
        if isDropping { try await engine.edit { $0.dropBehindGap() } }
    }

    /// Fetches the pages that contain these items again, unless they are fresh: for the items on screen. Other pages stay as old as they
    /// are.
    ///
    /// Each page is confirmed by its validator, or costs its items. Pages whose place the server cannot find any more are fetched together
    /// with the page before them. Items behind a gap that have no page of their own are confirmed when the gap is filled.
    ///
    /// - Parameters:
    ///   - ids: identifiers of items. Those that are not loaded have no effect.
    ///   - isUserInitiated: whether a person has asked for it: then fresh pages are fetched too, and at once after a failure.
    /// - Throws: the error of the first request that fails. The shown items stay.
    public func refresh(
        around ids: some Sequence<Item.ID>,
        isUserInitiated: Bool = false
    ) async throws(LarderError) {
        let wanted = Set(ids.map(\.description))
        let start = engine.core.now()
        var asked: Set<PageRenewal> = []
        let (engine, due) = (engine, isUserInitiated ? nil : options)
        while true {
            let next = await engine.core.reading { [asked] in engine.nextRenewal(wanted, asked, due, since: start) }
            guard let next else { return }
            asked.insert(next)
            switch next {
            case .newest: try await engine.newest(isForced: isUserInitiated)
            case .page(let cursor): try await engine.load(.renewal(cursor), isUserInitiated: isUserInitiated)
            }
        }
    }

    var anchor: String? { state.withLock { $0.anchor } }

    func setAnchor(_ id: String) { state.withLock { $0.anchor = id } }

    /// Fetches the page after the last item, or at a gap below the items at which the timeline was opened (`open(at:)`).
    ///
    /// After a failure the next request waits as reads do, with jitter and not before `Retry-After`; until then this throws the error
    /// of the last request, with the wait in `retryAfter`.
    ///
    /// - Parameter isUserInitiated: whether a person has asked for another attempt: it is made at once.
    /// - Returns: whether there are more items.
    /// - Throws: the error of the request. The shown items stay.
    @discardableResult
    public func loadOlder(isUserInitiated: Bool = false) async throws(LarderError) -> Timeline<Item>.Progress {
        let before = await storedList
        if let gap = before?.gaps(around: anchor).older {
            try await fill(gap, isUserInitiated: isUserInitiated)
            return await storedList?.gaps(around: anchor).older == nil ? progress(.tail) : .more
        }
        if let before {
            guard before.tail != .end else { return .finished }
            guard before.items.count < engine.resource.keptMaximum else { return .full }
        }
        guard let before, before.tail != .unknown else {
            try await refresh()
            return await progress(.tail)
        }
        try await engine.load(.tail, isUserInitiated: isUserInitiated)
        return await progress(.tail)
    }

    /// Fetches the next page of a gap, from its newer end.
    ///
    /// - Parameters:
    ///   - gap: the gap, as a snapshot shows it.
    ///   - isUserInitiated: as for `loadOlder`.
    /// - Returns: whether the gap is still there. A gap that was closed meanwhile costs no request.
    /// - Throws: the error of the request. The shown items stay.
    @discardableResult
    public func fill(
        _ gap: Timeline<Item>.Gap,
        isUserInitiated: Bool = false
    ) async throws(LarderError) -> Timeline<Item>.Progress {
        guard await progress(gap.place) == .more else { return .finished }
        try await engine.load(gap.place, isUserInitiated: isUserInitiated)
        return await progress(gap.place)
    }

    /// The stored list, assembled on a thread of the cache, because it may read the disk.
    var storedList: Timeline<Item>.List? {
        get async {
            let node = engine.node
            return await engine.core.reading { node.content().value }
        }
    }

    private func progress(_ place: TimelinePlace) async -> Timeline<Item>.Progress {
        let list = await storedList
        if place == .tail { return list?.tail == .end ? .finished : .more }
        return list?.gaps.contains { $0.place == place } ?? false ? .more : .finished
    }

    /// Whether the reader is at the top of the list, where new items are inserted at once. Elsewhere they are held back and counted
    /// (`Snapshot.heldBackCount`), so that nothing moves what is being read. Items that were created on this device are never held back.
    ///
    /// The app sets it as the reader scrolls. Setting it to true shows the held-back items; setting it to false hides nothing that was
    /// shown. Of readers with timelines of their own each has its own.
    public var readerIsAtTop: Bool {
        get { state.withLock { $0.reader.isAtTop } }
        set {
            let (count, wakers) = state.withLock { state in
                state.reader.isAtTop = newValue
                return (newValue ? state.reader.showHeldBack() : 0, Array(state.wakers.values))
            }
            if count > 0 { for waker in wakers { waker() } }
        }
    }

    /// Shows the held-back items in the next snapshot, wherever the reader is. Returns their number.
    @discardableResult
    public func showHeldBack() -> Int {
        let (count, wakers) = state.withLock { ($0.reader.showHeldBack(), Array($0.wakers.values)) }
        for waker in wakers { waker() }
        return count
    }

    /// Inserts a new item at the front, as for an event. `CacheUpdate.insertNewest` does it together with other changes.
    ///
    /// - Parameters:
    ///   - item: the new item.
    ///   - isOwn: whether it was created on this device: it is then shown at once.
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
        var (view, pages) = state.withLock { $0.reader.view(of: snapshot, paging.fetching, paging.errors) }
        view.set(pages, options, engine.node, paging.fetching)
        return view
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
