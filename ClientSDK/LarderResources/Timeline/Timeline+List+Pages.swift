extension Timeline.List {
    /// A loaded page, with what its freshness depends on.
    struct Page: Sendable, Equatable {
        /// Its beginning; nil for the newest page.
        let start: RunList.Start?
        /// The number of its items in the list.
        var count = 0
        var state: PageState
        /// Whether the server no longer knows its cursor.
        let isCursorGone: Bool
    }

    /// Counts the items of pages again while items are removed from a list, in its order.
    struct PageCounter {
        private(set) var pages: [Page]
        private var page = 0
        /// The number of items of the page that were not counted yet.
        private var left: Int

        init(_ pages: [Page]) {
            self.pages = pages
            left = pages.first?.count ?? 0
        }

        mutating func count(isKept: Bool) {
            while left == 0, page + 1 < pages.count {
                page += 1
                left = pages[page].count
            }
            guard left > 0 else { return }
            left -= 1
            if !isKept { pages[page].count -= 1 }
        }
    }
}
