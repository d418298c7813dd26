public import LarderEvents
public import LarderStorage
public import LarderTime
import Synchronization

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

        /// - Parameter list: the shown part of the snapshot's list.
        init(
            _ snapshot: LarderResources.Snapshot<Timeline<Item>.List>,
            _ list: Timeline<Item>.List?,
            _ heldBackCount: Int,
            _ options: ReadOptions,
            _ node: Node<Timeline<Item>.List>
        ) {
            let (places, now) = (node.state.withLock { $0.places }, node.core.now())
            func isFetching(_ place: TimelinePlace) -> Bool { places[place]?.flight != nil }
            freshness = snapshot.freshness
            source = snapshot.source
            times = snapshot.times
            isRefreshing = snapshot.isFetching
            refreshError = snapshot.refreshError
            pendingChanges = snapshot.pendingChanges
            revision = snapshot.revision
            isLoadingOlder = isFetching(.tail)
            loadOlderError = places[.tail]?.backOff.error
            let gaps = snapshot.value?.gaps ?? []
            gapsBeingFilled = Set(gaps.filter { isFetching($0.place) }.map(\.id))
            gapErrors = Dictionary(gaps.compactMap { gap in places[gap.place]?.backOff.error.map { (gap.id, $0) } }) {
                $1
            }
            hasReachedEnd = snapshot.value?.hasReachedEnd ?? false
            self.heldBackCount = heldBackCount
            guard let list else { return }
            (segments, items) = (list.segments, list.items)
            var first = 0
            for page in list.pages {
                let range = first..<first + page.items.count
                guard !range.isEmpty else { continue }
                first = range.upperBound
                let isRefreshed = page.start.map { $0.gap == nil && isFetching(.page($0.cursor)) }
                pages.append(
                    Timeline<Item>.Page(
                        range: range,
                        freshness: node.freshness(page.facts, options, at: now),
                        times: node.times(page.facts, options, at: now),
                        isRefreshing: isRefreshed ?? isRefreshing
                    )
                )
            }
            if !pages.isEmpty { freshness = freshness(of: 0..<first) }
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

    /// A loaded page of a timeline, as a part of a snapshot: consecutive items, and how current they are.
    ///
    /// A page is as old as its oldest item. A refresh by overlap moves items from the newest page to older ones, so a page may have fewer
    /// items than were requested, and after small pages were joined up to as many.
    public struct Page: Sendable {
        /// The indices of its items in `Snapshot.items`. Not empty.
        public let range: Range<Int>
        /// Whether its items are current.
        public let freshness: Freshness
        /// When it was fetched, was last confirmed by the server, and expires.
        package let times: Freshness.Times
        /// When the server last confirmed it.
        public var validatedAt: WallTime { times.validatedAt }
        /// Whether it is being fetched again.
        public let isRefreshing: Bool

        /// Whether another page has the same visible content: times do not count.
        func hasSameContent(as other: Timeline<Item>.Page) -> Bool {
            range == other.range && freshness == other.freshness && isRefreshing == other.isRefreshing
        }
    }
}

extension Timeline.Snapshot {
    /// The freshness of some of the shown items, such as those on screen: fresh only if all of their pages are.
    ///
    /// - Parameter range: indices of `items`; what is outside of them does not count.
    public func freshness(of range: Range<Int>) -> Freshness {
        let parts = pages.filter { $0.range.overlaps(range) }
        guard !parts.isEmpty else { return freshness }
        return parts.first { !$0.freshness.isFresh }?.freshness ?? .fresh
    }

    /// What to tell a person about the shown items. The age is that of the oldest page.
    ///
    /// - Parameters:
    ///   - now: the present time.
    ///   - isOffline: as for `LarderResources.Snapshot.notice`.
    public func notice(at now: WallTime, isOffline: Bool = false) -> Freshness.Notice {
        let oldest = pages.map(\.times).min { $0.validatedAt < $1.validatedAt } ?? times
        // A page whose items were never confirmed together has no age. The list has one.
        let isUnknown = oldest?.validatedAt == Freshness.Times.never && times?.validatedAt != Freshness.Times.never
        return Freshness.Notice(
            freshness,
            validatedAt: isUnknown ? nil : oldest?.validatedAt,
            isFetching: isRefreshing,
            isOffline: isOffline || refreshError?.code == .offline,
            at: now
        )
    }
}
