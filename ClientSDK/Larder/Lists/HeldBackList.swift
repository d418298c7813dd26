import Synchronization

/// A list that does not jump: new items at its beginning are held back until the reader takes them («12 new posts»), while changes
/// to and removals of what is shown happen at once.
///
/// A value without any source: feed it what comes, show `items`.
public struct HeldBackList<Item: Identifiable & Sendable & Equatable>: Sendable where Item.ID: Sendable {
    /// What is shown.
    public private(set) var items: [Item] = []
    /// How many new items are held back.
    public var heldCount: Int { held.count }
    /// What is held back, in order.
    public private(set) var held: [Item] = []
    private var all: [Item] = []
    private var isEmpty = true

    /// A list that shows whatever comes first.
    public init() {}

    /// The list as it is now.
    public mutating func receive(_ new: [Item]) {
        defer { all = new }
        guard !isEmpty else {
            isEmpty = new.isEmpty
            items = new
            return
        }
        let shown = Set(items.map(\.id))
        // What comes before the first item that is shown already is new. Where none of them is left there is nothing to keep still.
        guard let first = new.firstIndex(where: { shown.contains($0.id) }) else {
            isEmpty = new.isEmpty
            (items, held) = (new, [])
            return
        }
        held = Array(new[..<first])
        items = Array(new[first...])
    }

    /// Shows what was held back; how many that were.
    @discardableResult
    public mutating func take() -> Int {
        defer { (items, held) = (all, []) }
        return held.count
    }
}

/// What a reader of a list with held-back items is shown.
public struct HeldBackView<Item: Entity>: Sendable {
    /// What is shown.
    public let items: [Item]
    /// How many new items are held back.
    public let heldCount: Int
    /// What has changed since the view before.
    public let difference: ListDifference<String>
    /// The snapshot that it was made of, with all items.
    public let snapshot: Snapshot<EntityList<Item>>
}

/// Observes a list for one reader, who decides when new items are shown. Safe from any task; one task iterates at a time.
///
/// It observes for as long as an iteration lasts. What is shown and what is held back stays for the next iteration, also after a
/// cancellation.
public final class HeldBackSnapshots<Item: Entity>: AsyncSequence, Sendable {
    /// Gives views.
    public struct Iterator: AsyncIteratorProtocol {
        let source: HeldBackSnapshots
        private var subscription: Snapshots<EntityList<Item>>.Subscription?
        private var last: HeldBackView<Item>?

        init(source: HeldBackSnapshots) { self.source = source }

        /// The next view; nil when the task was cancelled or the cache closed.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> HeldBackView<Item>? {
            let subscription = subscription ?? source.subscribe()
            self.subscription = subscription
            while let snapshot = await subscription.mailbox.next() {
                let view = source.view(of: snapshot)
                if let last, view.difference.isEmpty, last.heldCount == view.heldCount,
                    last.snapshot.says(thatOf: view.snapshot)
                {
                    continue
                }
                last = view
                return view
            }
            return nil
        }
    }

    private struct State {
        var list = HeldBackList<Item>()
        var last: Snapshot<EntityList<Item>>?
        var shown: [Item] = []
        /// The iteration's own.
        weak var subscription: Snapshots<EntityList<Item>>.Subscription?
    }

    private let snapshots: Snapshots<EntityList<Item>>
    private let state = Mutex(State())

    init(_ snapshots: Snapshots<EntityList<Item>>) { self.snapshots = snapshots }

    /// Shows what is held back: the next view has it. How many items that were.
    @discardableResult
    public func take() -> Int {
        let (count, last, subscription) = state.withLock { state in
            (state.list.take(), state.last, state.subscription)
        }
        if let last { subscription?.mailbox.putAgain(last) }
        return count
    }

    /// Begins to observe, at the first call of `next`.
    public func makeAsyncIterator() -> Iterator { Iterator(source: self) }

    private func subscribe() -> Snapshots<EntityList<Item>>.Subscription {
        let subscription = Snapshots<EntityList<Item>>.Subscription(snapshots.node, snapshots.options)
        state.withLock { $0.subscription = subscription }
        return subscription
    }

    private func view(of snapshot: Snapshot<EntityList<Item>>) -> HeldBackView<Item> {
        let (list, before) = state.withLock { state in
            // One that was put again by `take` may be older than the last.
            if state.last.map({ snapshot.revision >= $0.revision }) ?? true {
                if let items = snapshot.value?.items, state.last?.revision != snapshot.revision || state.last == nil {
                    state.list.receive(items)
                }
                state.last = snapshot
            }
            defer { state.shown = state.list.items }
            return (state.list, state.shown)
        }
        // Compared outside of the lock: `==` is the user's.
        return HeldBackView(
            items: list.items,
            heldCount: list.heldCount,
            difference: ListDifference(from: before, to: list.items),
            snapshot: snapshot
        )
    }
}

extension Snapshots {
    /// The same for a reader who is shown new items only when they ask for them.
    public func holdingNewItems<Item: Entity>() -> HeldBackSnapshots<Item> where Value == EntityList<Item> {
        HeldBackSnapshots(self)
    }
}
