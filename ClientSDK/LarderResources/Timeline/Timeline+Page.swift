import LarderStorage
public import LarderTime

extension Timeline {
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

    /// Sets the pages, and the freshness of all of them.
    mutating func set(
        _ loaded: [Timeline<Item>.List.Page],
        _ options: ReadOptions,
        _ node: Node<Timeline<Item>.List>,
        _ fetching: Set<TimelinePlace>
    ) {
        let now = node.core.now()
        var first = 0
        for page in loaded where page.count > 0 {
            var isRefreshing = page.start == nil && self.isRefreshing
            if case .joined(let cursor) = page.start { isRefreshing = fetching.contains(.renewal(cursor)) }
            pages.append(
                Timeline<Item>.Page(
                    range: first..<first + page.count,
                    freshness: node.freshness(page.state, options, at: now),
                    times: node.times(page.state, options, at: now),
                    isRefreshing: isRefreshing
                )
            )
            first += page.count
        }
        if !pages.isEmpty { freshness = freshness(of: 0..<first) }
    }
}
