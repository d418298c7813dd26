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
    let resource: PagedResource<Item>
    let node: Node<Timeline<Item>.List>
    let options: ReadOptions
    var core: CacheCore { node.core }
    private struct State {
        var reader: TimelineReader<Item>
        /// The item at which the list was opened.
        var anchor: String?
    }
    private let state: Mutex<State>

    init(_ resource: PagedResource<Item>, _ policy: ReadPolicy?, readerIsAtTop: Bool, _ core: CacheCore) {
        let newest = resource.list
        let node = core.nodes.node(of: newest, in: core)
        node.take(newest)
        self.resource = resource
        self.node = node
        options = node.options(newest, policy)
        state = Mutex(State(reader: TimelineReader(isAtTop: readerIsAtTop)))
    }

    /// The key of the list in the store.
    public var key: QueryKey { node.key }

    // MARK: Reading

    /// Observes the list for as long as the sequence is iterated. The first snapshot has the stored items, before any request.
    ///
    /// Snapshots are in order; a slow reader gets the newest one and not all, and a snapshot without a change is left out. The sequence
    /// ends when its task is cancelled and when the cache is closed.
    public var snapshots: some AsyncSequence<Timeline<Item>.Snapshot, Never> & Sendable {
        Timeline<Item>.Snapshots(timeline: self)
    }

    /// Reads the list by the policy: with `staleWhileRevalidate` the stored list, if there is one.
    ///
    /// - Throws: the error of the request if nothing is stored; `.notCached`, `.cancelled`.
    public func snapshot() async throws(LarderError) -> Timeline<Item>.Snapshot {
        let now = core.now()
        core.checkForeignCommits(at: now)
        if let content = node.atHand(options, at: now) {
            return view(node.current(content, options, at: now))
        }
        let (node, options) = (node, options)
        return view(try await core.reading { () async throws(LarderError) in try await node.read(options) })
    }

    /// Fetches the newest page, whatever is stored, and merges it by overlap. Costs one page or a 304.
    ///
    /// - Throws: the error of the request. The shown items stay.
    public func refresh() async throws(LarderError) {
        let (node, options, since) = (node, options, core.now().uptime)
        _ = try await core.reading { () async throws(LarderError) in
            try await node.refresh(since: since, options)
        }
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
        let start = core.now()
        var asked: Set<TimelinePlace> = []
        let due = isUserInitiated ? nil : options
        while true {
            let next = await core.reading { [asked] in self.nextRenewal(wanted, asked, due, since: start) }
            guard let next else { return }
            asked.insert(next)
            if next == .page(nil) {
                try await newest(isForced: isUserInitiated)
            } else {
                try await load(next, isUserInitiated: isUserInitiated)
            }
        }
    }

    /// The next page to fetch again for some items; nil if there is none left.
    ///
    /// - Parameters:
    ///   - asked: the pages that were requested before.
    ///   - options: the settings of the reader for whom fresh pages are not fetched; nil: they are.
    ///   - start: when the refresh began. A page that was confirmed since is not fetched.
    private func nextRenewal(
        _ wanted: Set<String>,
        _ asked: Set<TimelinePlace>,
        _ options: ReadOptions?,
        since start: Moment
    ) -> TimelinePlace? {
        guard let pages = node.content().value?.pages else { return nil }
        let now = core.now()
        for (index, page) in pages.enumerated() {
            let isDue =
                options.map { node.freshness(page.facts, $0, at: now) != .fresh }
                ?? (page.facts.times.validatedAt < start.wall || page.facts.reason != nil)
            guard isDue, page.items.contains(where: { wanted.contains($0.entityID) }) else { continue }
            // The nearest page at or above it that can be requested, without a gap in between.
            guard let above = pages[...index].last(where: { $0.start != .joined(nil) }),
                above.start?.gap == nil, !asked.contains(.page(above.start?.cursor))
            else { continue }
            return .page(above.start?.cursor)
        }
        return nil
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
            guard before.items.count < resource.keptMaximum else { return .full }
        }
        guard let before, before.tail != .unknown else {
            try await refresh()
            return await progress(.tail)
        }
        try await load(.tail, isUserInitiated: isUserInitiated)
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
        try await load(gap.place, isUserInitiated: isUserInitiated)
        return await progress(gap.place)
    }

    /// The stored list, assembled on a thread of the cache, because it may read the disk.
    var storedList: Timeline<Item>.List? {
        get async {
            let node = node
            return await core.reading { node.content().value }
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
            state.withLock { $0.reader.isAtTop = newValue }
            if newValue { showHeldBack() }
        }
    }

    /// Shows the held-back items in the next snapshot, wherever the reader is. Returns their number.
    @discardableResult
    public func showHeldBack() -> Int {
        let count = state.withLock { $0.reader.showHeldBack() }
        if count > 0 { node.showAgain() }
        return count
    }

    // MARK: Views

    func view(_ snapshot: LarderResources.Snapshot<Timeline<Item>.List>) -> Timeline<Item>.Snapshot {
        let ((present, heldBackCount, list), earlier) = state.withLock { state in
            let earlier = state.reader
            return (state.reader.view(of: snapshot), earlier)
        }
        // It has values of the app, which are released without a lock.
        withExtendedLifetime(earlier) {}
        return Timeline<Item>.Snapshot(present, list, heldBackCount, options, node)
    }
}

extension Timeline {
    /// The snapshots of a timeline. Each iteration observes the timeline separately; one task may iterate.
    struct Snapshots: AsyncSequence, Sendable {
        /// Returns snapshots in order; a slow reader gets the newest one.
        struct Iterator: AsyncIteratorProtocol {
            let timeline: Timeline<Item>
            var lists: LarderResources.Snapshots<Timeline<Item>.List>.Iterator
            private var last: Timeline<Item>.Snapshot?

            init(_ timeline: Timeline<Item>) {
                self.timeline = timeline
                lists = .init(node: timeline.node, options: timeline.options)
            }

            /// The next snapshot; nil when the task was cancelled or the cache closed.
            mutating func next(isolation actor: isolated (any Actor)?) async -> Timeline<Item>.Snapshot? {
                while let snapshot = await lists.nextShown() {
                    var view = timeline.view(snapshot)
                    if let last, last.hasSameContent(as: view) { continue }
                    view.difference = ListDifference(from: last?.items ?? [], to: view.items)
                    last = view
                    return view
                }
                return nil
            }
        }

        let timeline: Timeline<Item>

        /// Creates an iterator, which begins to observe at the first call of `next`.
        func makeAsyncIterator() -> Iterator { Iterator(timeline) }
    }

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
