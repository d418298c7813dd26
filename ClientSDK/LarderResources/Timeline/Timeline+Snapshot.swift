public import LarderStorage

extension Timeline {
    /// The state of a timeline for one reader at one moment.
    public struct Snapshot: Sendable {
        /// The shown runs of items and the gaps between them, without held-back items.
        public internal(set) var segments: [Timeline<Item>.Segment] = []
        /// The shown items, across the gaps.
        public internal(set) var items: [Item] = []
        /// The number of new items that are held back until `Timeline.showHeldBack`.
        public internal(set) var heldBackCount = 0
        /// The edits since the previous snapshot of the same iteration.
        public internal(set) var difference = ListDifference<Item.ID>(from: [Item](), to: [])
        /// Whether the oldest item is loaded.
        public internal(set) var hasReachedEnd = false
        /// The freshness of the newest page.
        public let freshness: Freshness
        /// Where the list came from; nil if there is none.
        public let source: LarderResources.Snapshot<Timeline<Item>.List>.Source?
        /// When the newest page was fetched, was validated and expires; nil if there is none.
        public let times: Freshness.Times?
        /// Whether the newest page is being fetched.
        public let isRefreshing: Bool
        /// Whether the page after the last item is being fetched.
        public let isLoadingOlder: Bool
        /// The gaps that are being filled (`Timeline.Gap.id`).
        public let gapsBeingFilled: Set<String>
        /// The error of the last refresh; nil if it succeeded.
        public let refreshError: LarderError?
        /// The error of the last attempt to load older items.
        public let loadOlderError: LarderError?
        /// The errors of the last attempts to fill gaps (`Timeline.Gap.id`).
        public let gapErrors: [String: LarderError]
        /// The number of local changes that the server has not acknowledged.
        public let pendingChanges: Int
        /// Grows with every change: of two snapshots the one with the larger revision is later.
        public let revision: UInt64

        /// How complete the list is: complete, with gaps, or its newest part.
        public var completeness: Completeness {
            let gaps = segments.lazy.filter { $0.gap != nil }.count
            if freshness == .missing { return .unknown }
            return gaps > 0 ? .gapped(gaps) : hasReachedEnd ? .complete : .partial
        }

        init(
            _ snapshot: LarderResources.Snapshot<Timeline<Item>.List>,
            _ fetching: Set<TimelinePlace>,
            _ errors: [TimelinePlace: LarderError]
        ) {
            freshness = snapshot.freshness
            source = snapshot.source
            times = snapshot.times
            isRefreshing = snapshot.activity == .fetching
            isLoadingOlder = fetching.contains(.tail)
            gapsBeingFilled = Set(fetching.subtracting([.tail]).map { Timeline<Item>.Gap($0).id })
            refreshError = snapshot.refreshError
            loadOlderError = errors[.tail]
            var gapErrors: [String: LarderError] = [:]
            for (place, error) in errors where place != .tail { gapErrors[Timeline<Item>.Gap(place).id] = error }
            self.gapErrors = gapErrors
            pendingChanges = snapshot.pendingChanges
            revision = snapshot.revision
            hasReachedEnd = snapshot.value?.hasReachedEnd ?? false
        }

        /// Whether another snapshot has the same visible content.
        func hasSameContent(as other: Timeline<Item>.Snapshot) -> Bool {
            func text(_ error: LarderError?) -> String? { error?.description }
            return heldBackCount == other.heldBackCount && hasReachedEnd == other.hasReachedEnd
                && freshness == other.freshness && isRefreshing == other.isRefreshing
                && isLoadingOlder == other.isLoadingOlder && gapsBeingFilled == other.gapsBeingFilled
                && pendingChanges == other.pendingChanges && text(refreshError) == text(other.refreshError)
                && text(loadOlderError) == text(other.loadOlderError)
                && gapErrors.mapValues(\.description) == other.gapErrors.mapValues(\.description)
                && segments == other.segments
        }
    }
}

/// The items that one reader was shown, and the items that are held back.
struct TimelineReader<Item: CacheEntity>: Sendable {
    private var last: LarderResources.Snapshot<Timeline<Item>.List>?
    private var shown: Set<String> = []
    private var held: Set<String> = []
    private var hasShown = false
    private let holdsBack: Bool

    init(holdsBack: Bool) { self.holdsBack = holdsBack }

    /// Shows all items, and returns the number of held-back ones.
    mutating func showHeldBack() -> Int {
        defer {
            shown.formUnion(held)
            held = []
        }
        return held.count
    }

    mutating func view(
        of snapshot: LarderResources.Snapshot<Timeline<Item>.List>,
        _ fetching: Set<TimelinePlace>,
        _ errors: [TimelinePlace: LarderError]
    ) -> Timeline<Item>.Snapshot {
        // A snapshot that is viewed again may be older than the last one.
        if last.map({ snapshot.revision >= $0.revision }) ?? true {
            last = snapshot
            if let list = snapshot.value { receive(list) }
        }
        let present = last ?? snapshot
        var view = Timeline<Item>.Snapshot(present, fetching, errors)
        view.heldBackCount = held.count
        guard let list = present.value else { return view }
        view.segments = visible(list)
        view.items = view.segments.flatMap { segment in
            guard case .items(let items) = segment else { return [Item]() }
            return items
        }
        return view
    }

    /// Items before the first shown item are new, unless they were created on this device. If no shown item is left, nothing is held
    /// back.
    private mutating func receive(_ list: Timeline<Item>.List) {
        let ids = list.items.map(\.entityID)
        guard hasShown, holdsBack,
            let first = ids.firstIndex(where: { shown.contains($0) && !list.localIDs.contains($0) })
        else {
            hasShown = !ids.isEmpty
            shown = Set(ids)
            held = []
            return
        }
        held = Set(ids[..<first].filter { !shown.contains($0) && !list.localIDs.contains($0) })
        shown = Set(ids).subtracting(held)
    }

    private func visible(_ list: Timeline<Item>.List) -> [Timeline<Item>.Segment] {
        guard !held.isEmpty else { return list.segments }
        var result = Timeline<Item>.List()
        var isBehindHeld = false
        for segment in list.segments {
            switch segment {
            // A gap behind held-back items is held back with them.
            case .gap(let gap): if !isBehindHeld { result.append(gap) }
            case .items(let items):
                for item in items {
                    isBehindHeld = held.contains(item.entityID)
                    if !isBehindHeld { result.append(item) }
                }
            }
        }
        return result.segments
    }
}
