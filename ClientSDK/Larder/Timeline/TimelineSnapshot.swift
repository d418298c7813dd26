/// What a reader of a timeline is shown at one moment.
public struct TimelineSnapshot<Item: Entity>: Sendable {
    /// What is shown: runs of items, and the gaps between them. Without what is held back.
    public internal(set) var segments: [TimelineSegment<Item>] = []
    /// The items that are shown, across the gaps.
    public internal(set) var items: [Item] = []
    /// How many new items are held back until `Timeline.takeNew`.
    public internal(set) var heldBackCount = 0
    /// What has changed among the items since the snapshot before, in the same iteration.
    public internal(set) var difference = ListDifference<String>(from: [Item](), to: [])
    /// Whether the oldest item of all is there.
    public internal(set) var hasReachedEnd = false
    /// Whether the newest page may be taken for current.
    public let freshness: Freshness
    /// Where it came from; nil where there is nothing.
    public let source: Snapshot<TimelineList<Item>>.Source?
    /// When the newest page came, was confirmed, and expires; nil where there is none.
    public let times: ValueTimes?
    /// Whether the newest page is being asked for.
    public let isRefreshing: Bool
    /// Whether the page after the last item is being asked for.
    public let isLoadingOlder: Bool
    /// The gaps that are being filled (`TimelineGap.id`).
    public let gapsBeingFilled: Set<String>
    /// Why the last refresh failed; nil after one that did not.
    public let refreshError: LarderError?
    /// Why the last attempt at the page after the last item failed.
    public let loadOlderError: LarderError?
    /// Why the last attempts at gaps failed (`TimelineGap.id`).
    public let gapErrors: [String: LarderError]
    /// How many changes made here are shown that the server has not acknowledged.
    public let pendingChanges: Int
    /// Grows with everything that happens to the list: of two snapshots the one with the larger revision is the later.
    public let revision: UInt64

    /// How much of the list is there: all of it, all but some gaps, or its newest part.
    public var completeness: Completeness {
        let gaps = segments.lazy.filter { $0.gap != nil }.count
        if freshness == .missing { return .unknown }
        return gaps > 0 ? .gapped(gaps) : hasReachedEnd ? .complete : .partial
    }

    init(
        _ snapshot: Snapshot<TimelineList<Item>>,
        _ fetching: Set<TimelinePlace>,
        _ errors: [TimelinePlace: LarderError]
    ) {
        freshness = snapshot.freshness
        source = snapshot.source
        times = snapshot.times
        isRefreshing = snapshot.activity == .fetching
        isLoadingOlder = fetching.contains(.tail)
        gapsBeingFilled = Set(fetching.subtracting([.tail]).map { TimelineGap($0).id })
        refreshError = snapshot.refreshError
        loadOlderError = errors[.tail]
        var gapErrors: [String: LarderError] = [:]
        for (place, error) in errors where place != .tail { gapErrors[TimelineGap(place).id] = error }
        self.gapErrors = gapErrors
        pendingChanges = snapshot.pendingChanges
        revision = snapshot.revision
        hasReachedEnd = snapshot.value?.hasReachedEnd ?? false
    }

    /// Whether another snapshot says the same to somebody who looks at it.
    func says(thatOf other: TimelineSnapshot) -> Bool {
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

/// What one reader has been shown, and what is held back from them.
struct TimelineReader<Item: Entity>: Sendable {
    private var last: Snapshot<TimelineList<Item>>?
    private var shown: Set<String> = []
    private var held: Set<String> = []
    private var hasShown = false
    private let holdsBack: Bool

    init(holdsBack: Bool) { self.holdsBack = holdsBack }

    /// Shows everything from now on; how many items were held back.
    mutating func takeNew() -> Int {
        defer {
            shown.formUnion(held)
            held = []
        }
        return held.count
    }

    mutating func view(
        of snapshot: Snapshot<TimelineList<Item>>,
        _ fetching: Set<TimelinePlace>,
        _ errors: [TimelinePlace: LarderError]
    ) -> TimelineSnapshot<Item> {
        // One that is looked at again may be older than what was seen since.
        if last.map({ snapshot.revision >= $0.revision }) ?? true {
            last = snapshot
            if let list = snapshot.value { receive(list) }
        }
        let present = last ?? snapshot
        var view = TimelineSnapshot(present, fetching, errors)
        view.heldBackCount = held.count
        guard let list = present.value else { return view }
        view.segments = visible(list)
        view.items = view.segments.flatMap { segment in
            guard case .items(let items) = segment else { return [Item]() }
            return items
        }
        return view
    }

    /// What comes before the first item that is shown already is new, unless it was made here. Where none of them is left there is
    /// nothing to keep still.
    private mutating func receive(_ list: TimelineList<Item>) {
        let ids = list.items.map(\.id)
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

    private func visible(_ list: TimelineList<Item>) -> [TimelineSegment<Item>] {
        guard !held.isEmpty else { return list.segments }
        var result = TimelineList<Item>()
        var isBehindHeld = false
        for segment in list.segments {
            switch segment {
            // A gap between what is held back and what is shown comes with the former.
            case .gap(let gap): if !isBehindHeld { result.append(gap) }
            case .items(let items):
                for item in items {
                    isBehindHeld = held.contains(item.id)
                    if !isBehindHeld { result.append(item) }
                }
            }
        }
        return result.segments
    }
}
