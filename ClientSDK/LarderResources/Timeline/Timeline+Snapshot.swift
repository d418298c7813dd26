public import LarderEvents
public import LarderStorage
public import LarderTime

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
        /// The loaded pages that have shown items, in the order of `items`.
        public internal(set) var pages: [Timeline<Item>.Page] = []
        /// The freshness of all shown items: fresh only if every page is. `freshness(of:)` is that of a part.
        public internal(set) var freshness: Freshness
        /// Where the list came from; nil if there is none.
        public let source: CacheTier?
        /// When the newest page was fetched, was validated and expires; nil if there is none.
        package let times: Freshness.Times?
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

        /// When the newest page was fetched; nil if there is none.
        public var fetchedAt: WallTime? { times?.fetchedAt }
        /// When the server last confirmed the newest page; nil if there is none.
        public var validatedAt: WallTime? { times?.validatedAt }
        /// When the newest page stops being fresh; nil if there is none.
        public var expiresAt: WallTime? { times?.expiresAt }

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
            isRefreshing = snapshot.isFetching
            isLoadingOlder = fetching.contains(.tail)
            let places = Set(snapshot.value?.gaps.map(\.place) ?? [])
            gapsBeingFilled = Set(fetching.intersection(places).map { Timeline<Item>.Gap($0).id })
            refreshError = snapshot.refreshError
            loadOlderError = errors[.tail]
            var gapErrors: [String: LarderError] = [:]
            for (place, error) in errors where places.contains(place) {
                gapErrors[Timeline<Item>.Gap(place).id] = error
            }
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
                && segments == other.segments && pages.elementsEqual(other.pages) { $0.hasSameContent(as: $1) }
        }
    }
}
