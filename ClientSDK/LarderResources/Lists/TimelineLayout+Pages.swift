import LarderStorage
import LarderTime

/// The loaded pages of a layout: each boundary and each gap begins one, and the newest page begins the list.
///
/// All items of a page have the times of its oldest item, so a page never seems newer than one of its items.
extension TimelineLayout {
    /// The beginning of a page other than the newest.
    enum PageStart: Sendable, Hashable {
        case boundary(String)
        case gap(Int)
    }

    /// A loaded page: its beginning (nil for the newest), and its elements behind the beginning.
    struct Page {
        var start: PageStart?
        var range: Range<Int>
    }

    /// The pages in order. The first one has no start and is empty if the list begins with a gap or a boundary.
    var loadedPages: [Page] {
        var pages = [Page(start: nil, range: 0..<0)]
        for (index, element) in elements.enumerated() {
            if let start = element.start {
                pages.append(Page(start: start, range: index + 1..<index + 1))
            } else {
                pages[pages.count - 1].range = pages[pages.count - 1].range.lowerBound..<index + 1
            }
        }
        return pages
    }

    /// The items of a page that a reply has confirmed.
    func confirmedItems(_ page: Page) -> [EntityKey] {
        elements[page.range].compactMap { $0.item.flatMap { loose[$0] == nil ? $0 : nil } }
    }

    /// The items of the page that begins with a cursor.
    func items(ofPage cursor: String) -> [EntityKey] {
        loadedPages.first { $0.start == .boundary(cursor) }.map { elements[$0.range].compactMap(\.item) } ?? []
    }

    /// The validator for a request for a page that has not changed since it was fetched, with the number of items to ask for.
    func confirmation(_ cursor: String) -> PageFacts.Confirmation? {
        guard let known = pages[.boundary(cursor)]?.confirmation,
            known.digest == PageFacts.digest(items(ofPage: cursor))
        else { return nil }
        return known
    }

    /// The times of all items that a reply has confirmed.
    ///
    /// - Parameter head: the times of the newest page.
    func itemTimes(head: PageTimes) -> [EntityKey: PageTimes] {
        var times: [EntityKey: PageTimes] = [:]
        for page in loadedPages {
            let known = page.start.map { pages[$0]?.times ?? .never } ?? head
            for key in confirmedItems(page) { times[key] = known }
        }
        return times
    }

    /// Assigns times to all pages after a page was merged.
    ///
    /// - Parameters:
    ///   - earlier: the times of the items before the merge.
    ///   - start: the beginning of the merged page; nil for the newest, and for one that begins within another.
    ///   - isLate: whether a newer page was merged before it: it does not renew what is known.
    mutating func assignPages(
        _ page: IncomingPage,
        _ earlier: [EntityKey: PageTimes],
        start: PageStart?,
        confirmation: PageFacts.Confirmation? = nil,
        isLate: Bool,
        isNewest: Bool = false
    ) {
        if !isLate { separate(page, start, isNewest: isNewest) }
        var times = earlier
        for key in page.keys where !isLate || times[key] == nil { times[key] = page.times }
        for known in loadedPages {
            guard let beginning = known.start else { continue }
            let items = confirmedItems(known).compactMap { times[$0] }
            guard let first = items.first else { continue }
            let mixed = items.dropFirst().reduce(first) { $0.mixed(with: $1) }
            var facts = pages[beginning] ?? PageFacts(mixed)
            if facts.times != mixed { facts.confirmation = nil }
            facts.times = mixed
            if beginning == start, !isLate {
                facts.confirmation = confirmation
                facts.isCursorGone = false
            }
            pages[beginning] = facts
        }
        joinSmallPages(page.limit, except: start)
    }

    /// Makes the merged items one page: removes the boundaries within, and adds one behind them.
    private mutating func separate(_ page: IncomingPage, _ start: PageStart?, isNewest: Bool) {
        let keys = Set(page.keys)
        func isMerged(_ element: Element) -> Bool { element.item.map(keys.contains) ?? false }
        let beginning = start.flatMap { start in elements.firstIndex { $0.start == start } }.map { $0 + 1 } ?? 0
        guard let first = isNewest ? 0 : elements[beginning...].firstIndex(where: isMerged),
            let last = elements.lastIndex(where: isMerged), last >= first
        else { return }
        if let cursor = page.cursor, start != .boundary(cursor), last + 1 < elements.count,
            !elements[(last + 1)...].contains(.boundary(cursor))
        {
            switch elements[last + 1] {
            case .item: elements.insert(.boundary(cursor), at: last + 1)
            case .boundary(let old) where !knows(old):
                elements[last + 1] = .boundary(cursor)
                pages[.boundary(cursor)] = PageFacts(pages[.boundary(old)]?.times ?? .never)
            case .boundary, .gap: break
            }
        }
        let within = elements[first...last].filter { !$0.isBoundary }
        elements.replaceSubrange(first...last, with: within)
        // The same cursor at another place is outdated.
        var known = Set<String>()
        elements.removeAll { element in
            guard case .boundary(let cursor) = element else { return false }
            return !known.insert(cursor).inserted
        }
        let starts = Set(elements.compactMap(\.start))
        pages = pages.filter { starts.contains($0.key) }
    }

    /// Joins adjacent pages that together have at most `limit` items: each refresh moves a few items out of the newest page.
    private mutating func joinSmallPages(_ limit: Int, except start: PageStart?) {
        var gone = Set<PageStart>()
        var previous: (start: PageStart, count: Int)?
        for page in loadedPages {
            guard let beginning = page.start else { continue }
            let count = page.range.count
            guard case .boundary = beginning, let before = previous, before.start != start, beginning != start,
                before.count + count <= limit, let upper = pages[before.start], let lower = pages[beginning],
                !upper.isCursorGone
            else {
                previous = (beginning, count)
                continue
            }
            gone.insert(beginning)
            var joined = upper
            joined.times = upper.times.mixed(with: lower.times)
            joined.confirmation = nil
            pages[before.start] = joined
            pages[beginning] = nil
            previous = (before.start, before.count + count)
        }
        if !gone.isEmpty { elements.removeAll { $0.start.map(gone.contains) ?? false } }
    }

    /// Counts all pages but the newest as never confirmed.
    mutating func invalidatePages() {
        for page in loadedPages {
            guard let start = page.start else { continue }
            var facts = pages[start] ?? PageFacts(.never)
            facts.times = .never
            facts.confirmation = nil
            pages[start] = facts
        }
    }

    /// Renews the times of a page that the source has confirmed, unless it has changed meanwhile or a later request has confirmed it.
    ///
    /// - Parameters:
    ///   - stated: what the source has said about the freshness: a lifetime that it has not stated continues.
    ///   - time: when the request began, less the stated `Age`.
    mutating func confirm(
        _ cursor: String,
        _ confirmation: PageFacts.Confirmation,
        _ stated: StatedFreshness?,
        at time: WallTime,
        asked: Stamp
    ) {
        guard self.confirmation(cursor) == confirmation,
            let known = pages[.boundary(cursor)]?.times, known.asked <= asked
        else { return }
        var times = PageTimes(known.stated.updated(by: stated), at: time, asked: asked)
        times.fetchedAt = known.fetchedAt
        pages[.boundary(cursor)]?.times = times
    }

    /// Notes that the server no longer knows a cursor. The boundary stays, because it keeps the times of its page apart.
    mutating func forget(_ cursor: String) {
        guard elements.contains(.boundary(cursor)) else { return }
        var facts = pages[.boundary(cursor)] ?? PageFacts(.never)
        facts.isCursorGone = true
        facts.confirmation = nil
        pages[.boundary(cursor)] = facts
    }

    /// Whether a page begins with this cursor, and the server may know it.
    func knows(_ cursor: String) -> Bool {
        elements.contains(.boundary(cursor)) && !(pages[.boundary(cursor)]?.isCursorGone ?? false)
    }
}

extension TimelineLayout.Element {
    /// The beginning of a page; nil for an item.
    var start: TimelineLayout.PageStart? {
        switch self {
        case .item: nil
        case .boundary(let cursor): .boundary(cursor)
        case .gap(let number, _): .gap(number)
        }
    }

    var isBoundary: Bool {
        guard case .boundary = self else { return false }
        return true
    }
}
