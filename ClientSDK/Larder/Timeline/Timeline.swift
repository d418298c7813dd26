import LarderTime
import Synchronization

/// A list in pages as one reader sees it: what is stored at once, refreshed by one page, extended page by page, with gaps where
/// nobody knows what is missing, and with new items held back until the reader takes them.
///
/// Readers of one resource share what is stored and what is asked for; what is held back is each reader's own. Safe from any task.
public final class Timeline<Item: Entity>: Sendable {
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

    /// What it is called in the store.
    public var key: QueryKey { engine.node.key }

    // MARK: Reading

    /// What there is and what becomes of it, for as long as somebody iterates: first what is stored, before any request.
    ///
    /// Snapshots come in order; whoever is slow gets the newest and not all, and one that says nothing new is left out. The
    /// sequence ends when its task is cancelled and when the cache is closed.
    public var snapshots: TimelineSnapshots<Item> { TimelineSnapshots(self) }

    /// What there is now, as the policy says: with `staleWhileRevalidate` what is stored, if anything is.
    ///
    /// - Throws: what the network failed with, where nothing is stored; `.notCached`, `.cancelled`.
    public func snapshot() async throws(LarderError) -> TimelineSnapshot<Item> {
        let now = engine.core.now()
        engine.core.lookForOthers(at: now)
        if let content = engine.node.atHand(options, at: now) {
            return view(engine.node.snapshot(atHand: content, options, at: now))
        }
        return view(try await engine.node.read(options))
    }

    /// Asks for the newest page, whatever is stored, and merges it by overlap. Costs one page, or a «not modified».
    ///
    /// - Parameter separation: what becomes of the older part where the page does not reach it; nil: as the resource says.
    /// - Throws: what the network failed with. What is shown stays.
    public func refresh(whenApart separation: TimelineSeparation? = nil) async throws(LarderError) {
        let isReset = separation == .reset
        if isReset { engine.wishes.beginReset() }
        defer { if isReset { engine.wishes.endReset() } }
        _ = try await engine.node.refresh(since: engine.core.now().uptime, options)
    }

    /// Gets the page after the last item.
    ///
    /// - Returns: whether there is more.
    /// - Throws: what the network failed with. What is shown stays.
    @discardableResult
    public func loadOlder() async throws(LarderError) -> TimelineProgress {
        let before = engine.node.content().value
        guard let before, before.tail != .unknown else {
            try await refresh()
            return progress(.tail)
        }
        guard before.tail != .end else { return .finished }
        guard before.items.count < engine.resource.keptMaximum else { return .full }
        try await engine.load(.tail)
        return progress(.tail)
    }

    /// Gets the next page of what is missing in a gap, from its newer end.
    ///
    /// - Returns: whether the gap is still there. One that has been closed meanwhile costs no request.
    /// - Throws: what the network failed with. What is shown stays.
    @discardableResult
    public func fill(_ gap: TimelineGap) async throws(LarderError) -> TimelineProgress {
        guard progress(gap.place) == .more else { return .finished }
        try await engine.load(gap.place)
        return progress(gap.place)
    }

    private func progress(_ place: TimelinePlace) -> TimelineProgress {
        let list = engine.node.content().value
        if place == .tail { return list?.tail == .end ? .finished : .more }
        return list?.gaps.contains { $0.place == place } ?? false ? .more : .finished
    }

    /// Shows what is held back: the next snapshot has it. How many items that were.
    @discardableResult
    public func takeNew() -> Int {
        let (count, wakers) = state.withLock { ($0.reader.takeNew(), Array($0.wakers.values)) }
        for waker in wakers { waker() }
        return count
    }

    /// Puts a new item in front, as an event does that tells of one. `Update.insertNewest` does so together with other changes.
    ///
    /// - Parameter isOwn: whether it was made here: it is then shown at once.
    /// - Throws: `.storage`, `.encoding`; then nothing has changed.
    public func insertNewest(_ item: Item, isOwn: Bool = false) throws(LarderError) {
        var update = Update()
        update.answered = engine.node.storedKey
        update.insertNewest(item, in: key, isOwn: isOwn)
        try engine.core.commit(update)
    }

    // MARK: Views

    func view(_ snapshot: Snapshot<TimelineList<Item>>) -> TimelineSnapshot<Item> {
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

/// How far a timeline has come by a page.
public enum TimelineProgress: String, Sendable, Hashable {
    /// There is more to be had.
    case more
    /// The end was reached, the gap is closed.
    case finished
    /// There may be more, and as much is kept as the resource allows (`PagedResource.itemsMaximum`): nothing was asked for.
    case full
}

extension LarderCache {
    /// A list in pages, for one reader.
    ///
    /// - Parameters:
    ///   - policy: how it is read; nil: as the resource says.
    ///   - holdsBackNew: whether new items are counted only, until the reader takes them (`Timeline.takeNew`).
    public func timeline<Item: Entity>(
        _ resource: PagedResource<Item>,
        _ policy: ReadPolicy? = nil,
        holdsBackNew: Bool = true
    ) -> Timeline<Item> {
        let engine = core.timelines.engine(of: resource, in: core)
        return Timeline(engine, engine.take(resource, policy), holdsBackNew: holdsBackNew)
    }
}
