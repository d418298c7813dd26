import LarderStorage

/// How pages join the runs of a list. Each function finds the place of a page; `splice` puts it there.
extension RunList {
    /// Merges the newest page, unless a later page has brought the newest items, and it has none of them.
    ///
    /// - Parameter dropsBehindGap: whether the list ends with the page if the page shares no item with it.
    mutating func takeNewest(_ page: IncomingPage, dropsBehindGap: Bool = false) {
        let first = runs.first { $0.items.contains { $0.insertion == nil } } ?? runs[0]
        if page.isBefore(runs[0])
            || page.isBefore(first) && !first.items.contains(where: { page.keys.contains($0.key) })
        {
            return
        }
        let lastGap = details.lastGap
        splice(page, start: nil, above: [], below: runs)
        if dropsBehindGap, runs.count > 1, (runs[1].start?.gap ?? 0) > lastGap {
            end(at: 1)
        } else if tail == .unknown, let last = runs.lastIndex(where: { $0.start?.cursor != nil }) {
            // Otherwise the end of the list could never be loaded.
            end(at: last)
        }
    }

    /// Merges a page that was requested for a place. Nothing changes if the place no longer exists, or if its cursor has changed.
    mutating func take(_ page: IncomingPage, at place: TimelinePlace, cursor: String) {
        guard let index = runCount(above: place), self.cursor(of: place) == cursor else { return }
        if case .page = place, page.isBefore(runs[index]) { return }
        var (above, below) = (Array(runs[..<index]), Array(runs[index...]))
        if place == .tail, let last = above[index - 1].items.lastIndex(where: \.isPlaced) {
            // What was inserted at the end stays there.
            below = [above[index - 1].suffix(from: last + 1)]
            above[index - 1] = above[index - 1].prefix(last + 1)
        }
        splice(page, start: .joined(cursor), above: above, below: below)
    }

    /// Merges a page of newer items at the older end of a gap. Nothing changes if the gap or its cursor has changed since the request.
    mutating func takeNewer(_ page: IncomingPage, inGap number: Int, cursor: String) {
        guard let index = index(ofGap: number), runs[index].facts.newerCursor == cursor else { return }
        var page = page
        var place = Place(run: index)
        var start = newGap(nil)
        let known = Set(runs[..<index].flatMap { $0.items.filter(\.isPlaced).map(\.key) })
        if let last = page.keys.lastIndex(where: known.contains), let above = self.place(of: page.keys[last]) {
            // The page reaches the items above, which keep their age.
            page.keys.removeSubrange(...last)
            place = Place(run: above.run, item: above.item + 1)
            start = .joined(runs[index].start?.cursor)
        }
        let (above, below) = split(at: place)
        splice(page, start: start, above: above, below: below, closing: index - place.run)
    }

    /// Merges a page around an item. If it overlaps no loaded item, it is inserted by the order of the list, with gaps at both ends.
    ///
    /// If the list then has more than `keptMaximum` items, the oldest ones are dropped. If the page is among those, the list begins again
    /// with the page.
    ///
    /// - Parameter isNewer: whether the item with the first identifier comes before the one with the second.
    mutating func takeAround(_ page: IncomingPage, _ isNewer: (String, String) -> Bool, keptMaximum: Int) {
        guard let top = page.keys.first else { return }
        let before = self
        insert(page, before: firstPlace { $0.isPlaced && isNewer(top.id, $0.key.id) })
        let merged = Set(items).intersection(page.keys)
        keep(atMost: keptMaximum)
        if merged.isSubset(of: items) { return }
        self = before
        runs = [Run(items: runs.flatMap { $0.items.filter { !$0.isPlaced } })]
        tail = .unknown
        insert(page, before: nil)
    }

    /// Inserts a page at the first of its items that the list has, or before another item. Unless it begins with an item of the list, a gap is
    /// above it.
    ///
    /// - Parameters:
    ///   - next: the item that follows the page if the list has none of it; nil: none does.
    private mutating func insert(_ page: IncomingPage, before next: Place?) {
        var page = page
        let new = Set(page.keys)
        let shared = firstPlace { $0.isPlaced && new.contains($0.key) }
        guard var place = shared ?? next else {
            return splice(page, start: newGap(tail.cursor), above: runs, below: [])
        }
        let run = runs[place.run]
        var isContinued = false
        if shared != nil, let index = page.keys.firstIndex(of: run.items[place.item].key) {
            // A later page lacks what is in front.
            if page.isBefore(run), place.item > 0 || run.start?.gap == nil { page.keys.removeFirst(index) }
            isContinued = page.keys.first == run.items[place.item].key
            if !isContinued {
                // The page covers the inserted items in front of the shared one.
                place.item = run.items[..<place.item].lastIndex(where: \.isPlaced).map { $0 + 1 } ?? 0
                isContinued = place == Place() && page.newerCursor == nil
            }
        }
        var (above, below) = split(at: place)
        if !isContinued, !above.contains(where: \.hasPlaced) {
            // The page may be above the cursor with which the list begins.
            above[above.count - 1].start?.cursor = nil
        }
        splice(page, start: isContinued ? .joined(nil) : newGap(nil), above: above, below: below)
    }

    // MARK: Joining

    /// Puts a page between two parts of the list.
    ///
    /// A page replaces what it covers: from its place down to the last of its items that the list has there. What lies in between and is
    /// missing in the page is deleted, unless it came after the request began or was inserted shortly before. What follows stays: it
    /// continues the page, or a gap is left.
    ///
    /// - Parameters:
    ///   - start: how the page begins; nil: it is the newest one.
    ///   - closed: the run below that follows the page, whether they share an item or not; nil: none does.
    private mutating func splice(
        _ page: IncomingPage,
        start: Start?,
        above: [Run],
        below: [Run],
        closing closed: Int? = nil
    ) {
        var page = page
        let confirmation = page.confirmation
        let known = Set(above.flatMap { $0.items.filter(\.isPlaced).map(\.key) })
        page.keys.removeAll(where: known.contains)
        let seam = Seam(of: page, start: start, in: below, closing: closed)
        if seam.count < page.keys.count { page.cursor = nil }
        page.keys.removeSubrange(seam.count...)
        let new = Set(page.keys)

        var covered = Array(below.prefix(seam.place.run))
        var rest = Array(below.dropFirst(seam.place.run))
        if seam.place.item > 0 {
            covered.append(rest[0].prefix(seam.place.item))
            rest[0] = rest[0].suffix(from: seam.place.item)
        }
        var run = Run(start: start, items: page.items(replacing: covered), facts: PageFacts(page.times))
        run.facts.confirmation = confirmation
        if start?.gap != nil { run.facts.newerCursor = page.newerCursor }
        for index in rest.indices { rest[index].items.removeAll { new.contains($0.key) } }
        if let first = rest.first, first.items.isEmpty, (first.start ?? .joined(nil)) == .joined(nil) {
            rest.removeFirst()
        }

        let isEnd = page.cursor == nil && seam.kind != .closed
        if isEnd || !rest.contains(where: \.hasPlaced) {
            run.items += rest.flatMap { other in
                other.items.filter { item in
                    let isKept = page.keeps(item, of: other, isUnbroken: seam.isUnbroken)
                    // Without a known place it stays behind what was loaded, unless the newest page should have had it.
                    return isEnd ? isKept : !item.isPlaced && (isKept || start != nil)
                }
            }
            if isEnd { tail = .end } else if let cursor = page.cursor, seam.kind != .closed { tail = .cursor(cursor) }
            rest = []
        } else {
            attach(&rest, to: &run, at: seam, page)
        }
        var upper = above
        for index in upper.indices { upper[index].items.removeAll { !$0.isPlaced && new.contains($0.key) } }
        runs = upper + [run] + rest
        normalize()
    }

    /// Begins the runs behind a page where it ends.
    private mutating func attach(_ rest: inout [Run], to run: inout Run, at seam: Seam, _ page: IncomingPage) {
        let start = rest[0].start ?? .joined(nil)
        switch seam.kind {
        case .closed: rest[0].start = .joined(start.gap == nil ? start.cursor ?? page.cursor : page.cursor)
        case .same where start.gap == nil: rest[0].start = .joined(start.cursor ?? page.cursor)
        case .same, .open: rest[0].start = start.gap.map { .gap($0, cursor: page.cursor) } ?? newGap(page.cursor)
        }
        // A validator belongs to a cursor.
        if rest[0].start != start { rest[0].facts.confirmation = nil }
        if seam.kind == .closed, rest[0].start == .joined(nil) {
            // It is the later one, so the page does not make it older. No page can be asked for it.
            run.join(rest.removeFirst())
            if run.start == nil { details.fed = max(details.fed, run.facts.asked) }
        }
        if let gap = rest.firstIndex(where: { $0.start?.gap != nil }), rest[gap].start?.cursor == nil {
            // What this gap lacks follows the page. What it brings again is known.
            rest[gap].start?.cursor = page.cursor
        }
        // Each refresh moves a few items out of the newest page.
        if rest.count > 1, rest[1].start?.gap == nil, rest[0].start?.cursor != nil,
            rest[0].items.count + rest[1].items.count <= page.limit
        {
            rest[0].join(rest.remove(at: 1))
        }
    }
}
