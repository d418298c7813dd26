import LarderStorage

/// Pages that are loaded upwards, or around an item.
extension TimelineLayout {
    /// The cursor of a gap whose newer end is the beginning of the list: the newest page fills it.
    static let newestCursor = ""

    /// Merges a page of newer items at the older end of a gap. Nothing changes if the gap or its cursor has changed since the request.
    mutating func takeNewer(_ page: IncomingPage, inGap number: Int, cursor: String, _ orders: inout QueryOrders) {
        guard let index = index(ofGap: number), let down = elements[index].gapCursor,
            pages[.gap(number)]?.newerCursor == cursor
        else { return }
        let earlier = itemTimes(head: page.head)
        let all = page.keys
        let above = Array(elements[..<index])
        let below = Array(elements[(index + 1)...])
        let known = Set(below.compactMap(\.item).filter { loose[$0] == nil })
        var page = page
        page.keys.removeAll { known.contains($0) }
        let new = Set(page.keys)
        func isOther(_ element: Element) -> Bool { element.item.map { !new.contains($0) } ?? true }
        let overlap = above.lastIndex { $0.item.map { new.contains($0) && loose[$0] == nil } ?? false }
        var start = PageStart.gap(number)
        if let overlap, let last = above[overlap].item, let offset = page.keys.firstIndex(of: last) {
            // The page reaches the items above: the gap is closed.
            let rest = protected(above[(overlap + 1)...].filter(isOther), page, orders)
            let fresh = page.keys[(offset + 1)...].map { Element.item($0) }
            elements = above[...overlap] + rest + [.boundary(down)] + fresh + below.filter(isOther)
            start = .boundary(down)
        } else {
            elements = above.filter(isOther) + [elements[index]] + page.keys.map { .item($0) } + below.filter(isOther)
            pages[.gap(number)]?.newerCursor = page.newerCursor
        }
        page.keys = all
        confirm(page, &orders, isHead: false)
        assignPages(page, earlier, start: start, isLate: false)
    }

    /// Merges a page around an item. If it overlaps no loaded item, it is inserted by the order of the list, with gaps at both ends.
    ///
    /// If the list then has more than `keptMaximum` items, the oldest ones are dropped. If the page is among those, the list begins again
    /// with the page.
    ///
    /// - Parameter isNewer: whether the item with the first identifier comes before the one with the second.
    mutating func takeAround(
        _ page: IncomingPage,
        _ isNewer: (String, String) -> Bool,
        keptMaximum: Int,
        _ orders: inout QueryOrders
    ) {
        let (before, ordersBefore) = (self, orders)
        mergeAround(page, isNewer, &orders)
        guard items.count > keptMaximum else { return }
        let merged = Set(items).intersection(page.keys)
        keep(atMost: keptMaximum)
        guard !merged.isSubset(of: items) else { return }
        (self, orders) = (before, ordersBefore)
        elements.removeAll { $0.item.map { loose[$0] == nil } ?? true }
        tail = .unknown
        mergeAround(page, isNewer, &orders)
    }

    private mutating func mergeAround(
        _ page: IncomingPage,
        _ isNewer: (String, String) -> Bool,
        _ orders: inout QueryOrders
    ) {
        let earlier = itemTimes(head: page.head)
        let new = Set(page.keys)
        var start: PageStart?
        let first = elements.firstIndex { $0.item.map { new.contains($0) && loose[$0] == nil } ?? false }
        if let first {
            let above = elements[..<first].filter { $0.item.map { !new.contains($0) } ?? true }
            guard let woven = weave(above, Array(elements[first...]), page, orders, isNewest: false, isLate: false)
            else { return }
            if case .gap(let number, _)? = above.last {
                pages[.gap(number), default: PageFacts(.never)].newerCursor = page.newerCursor
                start = .gap(number)
            }
            elements = woven
        } else {
            start = insert(page, isNewer, orders)
        }
        confirm(page, &orders, isHead: false)
        assignPages(page, earlier, start: start, isLate: false, isNewest: false)
    }

    /// Inserts a page that overlaps no loaded item. Returns the beginning of the page.
    private mutating func insert(
        _ page: IncomingPage,
        _ isNewer: (String, String) -> Bool,
        _ orders: QueryOrders
    ) -> PageStart? {
        guard let top = page.keys.first else { return nil }
        let place = elements.firstIndex { element in
            element.item.map { loose[$0] == nil && isNewer(top.id, $0.id) } ?? false
        }
        let new = Set(page.keys)
        func isOther(_ element: Element) -> Bool { element.item.map { !new.contains($0) } ?? true }
        var above = elements[..<(place ?? elements.endIndex)].filter(isOther)
        var below = elements[(place ?? elements.endIndex)...].filter(isOther)
        var start: PageStart?
        var facts = PageFacts(.never)
        // The gap that the page divides has the cursor of the items below it.
        var belowFacts: PageFacts?
        if case .gap(let number, _)? = above.last {
            belowFacts = pages[.gap(number)]
            start = .gap(number)
        } else if place == nil, case .cursor(let cursor) = tail {
            start = append(cursor, to: &above)
        } else if !above.contains(where: { $0.item.map { loose[$0] == nil } ?? false }) {
            start = append(Self.newestCursor, to: &above)
        } else if case .boundary(let cursor)? = above.last {
            above.removeLast()
            belowFacts = pages[.boundary(cursor)]
            start = append(cursor, to: &above)
        }
        facts.newerCursor = page.newerCursor
        if let start { pages[start] = facts }
        let items = page.keys.map { Element.item($0) }
        if let cursor = page.cursor {
            if below.contains(where: { $0.item != nil }) {
                lastGap += 1
                below.insert(.gap(lastGap, cursor: cursor), at: 0)
                if var belowFacts {
                    belowFacts.confirmation = nil
                    pages[.gap(lastGap)] = belowFacts
                }
            } else {
                tail = .cursor(cursor)
            }
        } else {
            below = protected(below, page, orders)
            tail = .end
        }
        elements = above + items + below
        return start
    }

    private mutating func append(_ cursor: String, to elements: inout [Element]) -> PageStart {
        lastGap += 1
        elements.append(.gap(lastGap, cursor: cursor))
        return .gap(lastGap)
    }
}
