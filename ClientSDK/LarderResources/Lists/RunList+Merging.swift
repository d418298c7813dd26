import LarderStorage
import LarderTime

/// A fetched page, and the facts that its merge depends on.
struct IncomingPage: Sendable {
    /// The items, without those that are known to be deleted.
    var keys: [EntityKey]
    /// The cursor of the next page; nil for the last page.
    var cursor: String?
    /// The number of items that were asked for.
    var limit: Int
    /// When its request began: its content is not older.
    var times: Freshness.Times
    var validator: String?
    /// The cursor of the page of newer items; nil if the server has stated none.
    var newerCursor: String?
    /// Whether the merge confirms a list that was invalid as a whole: then it confirms no other page.
    var isOnlyConfirmed = false
    /// When the page is stored.
    var receivedAt: WallTime

    var startedAt: WallTime { times.validatedAt }
}

/// How pages join the runs of a list.
///
/// A page replaces what it covers: from the place that it was requested for down to the last of its items that the list has there. What
/// lies in between and is missing in the page is deleted, unless it came after the request began. What follows stays: it continues the
/// page, or a gap is left.
extension RunList {
    /// How long an item that was inserted here may be missing on a replica that answers.
    static let replicaLagMaximum = Duration.seconds(60)

    /// Merges the newest page, unless a later one has come.
    mutating func takeNewest(_ page: IncomingPage, dropsBehindGap: Bool = false) {
        if page.isOnlyConfirmed { invalidatePages() }
        // A later page has come.
        if page.isBefore(runs[0]) { return }
        place(page, start: nil, above: [], below: runs, dropsBehindGap: dropsBehindGap)
        dropUnknownEnd()
    }

    /// Merges a page that was requested for a place. Nothing changes if the place no longer exists, or if its cursor has changed and the
    /// page does not continue the loaded items.
    mutating func take(_ page: IncomingPage, at place: TimelinePlace, cursor: String) {
        let index: Int?
        switch place {
        case .tail: index = tail.cursor == nil ? nil : runs.endIndex
        case .gap(let number): index = self.index(ofGap: number)
        case .page(let known?):
            index = self.index(ofPage: known)
            // A later page has replaced the run.
            if let index, page.isBefore(runs[index]) { return }
        case .page(nil), .newer, .around: index = nil
        }
        guard let index, let present = index < runs.count ? runs[index].start?.cursor : tail.cursor else { return }
        var page = page
        var above = Array(runs[..<index])
        // What was inserted at the end stays there.
        var inserted: [Item] = []
        if place == .tail, let last = above.last?.items.lastIndex(where: \.isPlaced) {
            inserted = Array(above[index - 1].items[(last + 1)...])
            above[index - 1].items.removeSubrange((last + 1)...)
        }
        if present != cursor {
            guard let last = above.last(where: { !$0.items.isEmpty })?.items.last?.key,
                let known = page.keys.firstIndex(of: last), known + 1 < page.keys.count
            else { return }
            page.keys.removeSubrange(...known)
            page.validator = nil
        }
        let digest = PageFacts.digest(page.keys)
        let known = Set(above.flatMap { $0.items.filter(\.isPlaced).map(\.key) })
        page.keys.removeAll(where: known.contains)
        self.place(page, start: .joined(present), above: above, below: Array(runs[index...]), digest: digest)
        let shown = Set(items)
        runs[runs.count - 1].items += inserted.filter { item in
            !shown.contains(item.key) && (tail != .end || isKept(item, runs[0], page, isUnbroken: false))
        }
    }

    /// Merges a page of newer items at the older end of a gap. Nothing changes if the gap or its cursor has changed since the request.
    mutating func takeNewer(_ page: IncomingPage, inGap number: Int, cursor: String) {
        guard let index = index(ofGap: number), var start = runs[index].start, runs[index].facts.newerCursor == cursor
        else { return }
        var page = page
        var (above, below) = (Array(runs[..<index]), Array(runs[index...]))
        let known = Set(below.flatMap { $0.items.filter(\.isPlaced).map(\.key) })
        page.keys.removeAll(where: known.contains)
        below[0].start = nil
        let new = Set(page.keys)
        if let run = above.lastIndex(where: { $0.items.contains { $0.isPlaced && new.contains($0.key) } }),
            let item = above[run].items.lastIndex(where: { $0.isPlaced && new.contains($0.key) }),
            let last = page.keys.firstIndex(of: above[run].items[item].key)
        {
            // The page reaches the items above: the gap is closed.
            page.keys.removeSubrange(...last)
            for other in run..<above.count {
                let first = other == run ? item + 1 : 0
                let rest = above[other].items[first...].filter { isKept($0, above[other], page, isUnbroken: false) }
                above[other].items.replaceSubrange(first..., with: rest)
            }
            start = .joined(start.cursor)
        }
        place(page, start: start, above: above, below: below, isAdjacent: true)
    }

    // MARK: Joining

    /// Puts a page behind some runs, and joins it with those below.
    ///
    /// - Parameters:
    ///   - start: nil: the page is the newest one.
    ///   - policy: what to do with the runs below if the page shares no item with them.
    ///   - isAdjacent: whether the runs below continue the page also if it shares no item with them.
    ///   - digest: that of the reply; nil if its validator does not stand for the run.
    mutating func place(
        _ page: IncomingPage,
        start: Start?,
        above: [Run],
        below: [Run],
        dropsBehindGap: Bool = false,
        isAdjacent: Bool = false,
        digest: UInt64? = nil
    ) {
        var page = page
        var places: [EntityKey: (run: Int, item: Int)] = [:]
        for (run, known) in below.enumerated() {
            for (item, entry) in known.items.enumerated() where entry.isPlaced { places[entry.key] = (run, item) }
        }
        // The first item below that the page does not cover.
        var cut = (run: 0, item: 0)
        var isJoined = isAdjacent
        let later = page.keys.firstIndex { places[$0].map { page.isBefore(below[$0.run]) } ?? false }
        if let later, let place = places[page.keys[later]] {
            // A later page has covered the rest.
            page.keys.removeSubrange(later...)
            (cut, isJoined) = (place, true)
        } else if let index = page.keys.lastIndex(where: { places[$0] != nil }), let place = places[page.keys[index]] {
            (cut, isJoined) = ((place.run, place.item + 1), isAdjacent || index == page.keys.count - 1)
        } else if start == nil, let first = below.first {
            let leading = first.items.prefix { !$0.isPlaced }
            cut.item = leading.lastIndex { page.keys.contains($0.key) }.map { $0 + 1 } ?? 0
        }
        let new = Dictionary(page.keys.enumerated().map { ($1, $0) }, uniquingKeysWith: { first, _ in first })

        // What stays although the page does not contain it, behind the item of the page that it follows.
        var followers: [Int: [Item]] = [:]
        var last = -1
        var waiting: [(item: Item, run: Int)] = []
        func settle(isUnbroken: Bool) {
            let kept = waiting.filter { isKept($0.item, below[$0.run], page, isUnbroken: isUnbroken) }.map(\.item)
            followers[last, default: []] += kept
            waiting = []
        }
        for (number, run) in below.enumerated().prefix(cut.run + 1) {
            for item in number == cut.run ? run.items[..<cut.item] : run.items[...] {
                // The place of an own item says nothing about its neighbors.
                if item.isOwn, new[item.key] != nil { continue }
                guard let place = new[item.key] else {
                    waiting.append((item, number))
                    continue
                }
                settle(isUnbroken: place == last + 1)
                last = place
            }
        }
        settle(isUnbroken: page.keys.count == last + 1)

        var rest = Array(below[min(cut.run, below.count)...])
        if !rest.isEmpty, cut.item > 0 {
            let items = Array(rest[0].items[cut.item...])
            rest[0] = Run(items: items, facts: PageFacts(rest[0].facts.times, asked: rest[0].facts.asked))
        }
        if let first = rest.first, first.start == nil,
            last < 0 ? start == nil : last != page.keys.count - 1 && page.cursor != nil
        {
            // Inserted items are above those of the page that the list did not have if they came after them.
            let moved = first.items.prefix { $0.insertion != nil }.filter { item in
                new[item.key] == nil && isKept(item, first, page, isUnbroken: places.isEmpty && last < 0)
                    && (item.insertion.map(page.isBefore) ?? false || places.isEmpty && last < 0)
            }
            followers[last, default: []] += moved
            rest[0].items.removeAll(where: moved.contains)
        }

        var run = Run(start: start, items: followers[-1] ?? [], facts: PageFacts(page.times))
        for (place, key) in page.keys.enumerated() {
            run.items.append(Item(key))
            if new[key] == place { run.items += followers[place] ?? [] }
        }
        if let digest, let validator = page.validator, later == nil {
            run.facts.confirmation = PageFacts.Confirmation(validator: validator, limit: page.limit, digest: digest)
        }
        if start?.gap != nil { run.facts.newerCursor = page.newerCursor }
        for index in rest.indices { rest[index].items.removeAll { new[$0.key] != nil } }
        if let first = rest.first, first.start == nil, first.items.isEmpty { rest.removeFirst() }
        if later != nil || isAdjacent && page.cursor == nil {
            if let start = rest.first?.start {
                rest[0].start = .joined(start.cursor)
            } else if !rest.isEmpty {
                run.join(rest.removeFirst())
            }
        } else {
            end(
                &run,
                page,
                &rest,
                isJoined: isJoined,
                isUnbroken: last == page.keys.count - 1,
                dropsBehindGap: dropsBehindGap
            )
        }
        var upper = above
        for index in upper.indices { upper[index].items.removeAll { !$0.isPlaced && new[$0.key] != nil } }
        runs = upper + [run] + rest
        normalize()
        joinSmallRuns(page.limit, except: start)
        // No page is asked for by this cursor: such a run continues the one above it.
        guard let index = index(ofPage: Self.newestCursor) else { return }
        runs[index - 1].join(runs[index])
        runs.remove(at: index)
    }

    /// Joins the end of a page with the runs that follow it.
    private mutating func end(
        _ run: inout Run,
        _ page: IncomingPage,
        _ rest: inout [Run],
        isJoined: Bool,
        isUnbroken: Bool,
        dropsBehindGap: Bool
    ) {
        guard let cursor = page.cursor else {
            for other in rest {
                run.items += other.items.filter { isKept($0, other, page, isUnbroken: isUnbroken) }
            }
            (rest, tail) = ([], .end)
            return
        }
        guard rest.contains(where: \.hasPlaced), isJoined || !dropsBehindGap
        else {
            (rest, tail) = ([], .cursor(cursor))
            return
        }
        if let index = rest.firstIndex(where: { $0.start?.gap != nil }),
            case .gap(let number, Self.newestCursor)? = rest[index].start
        {
            // What this gap lacks follows the page. What it brings again is known.
            rest[index].start = .gap(number, cursor: cursor)
        }
        switch rest[0].start {
        case .gap(let number, _)?: rest[0].start = .gap(number, cursor: cursor)
        case .joined? where isJoined && !rest[0].facts.isCursorGone: return
        case .joined?, nil: rest[0].start = isJoined ? .joined(cursor) : newGap(cursor)
        }
        rest[0].facts.isCursorGone = false
        rest[0].facts.confirmation = nil
    }

    /// Whether an item stays although a page that covers its place does not contain it: it came after the request began, or it was inserted
    /// a short time before, and a replica may not have it yet.
    ///
    /// - Parameter isUnbroken: whether its neighbors are those that it had before.
    private func isKept(_ item: Item, _ run: Run, _ page: IncomingPage, isUnbroken: Bool) -> Bool {
        guard let insertion = item.insertion else { return page.isBefore(run) }
        let insertedAt = WallTime(nanosecondsSinceEpoch: insertion.insertedAt)
        // An item of the future was inserted before the clock was set back.
        guard insertedAt <= page.receivedAt else { return false }
        return page.isBefore(insertion)
            || !insertion.isPlaced && (insertion.isOwn || isUnbroken)
                && page.startedAt - insertedAt < Self.replicaLagMaximum
    }

    // MARK: Order

    /// Removes repeated items, and runs without items: what follows such a run begins at its cursor.
    mutating func normalize() {
        var known = Set<EntityKey>()
        var cursors = Set<String>()
        var result: [Run] = []
        for var run in runs {
            run.items.removeAll { !known.insert($0.key).inserted }
            if case .joined(let cursor)? = run.start, !cursors.insert(cursor).inserted {
                // The same cursor at another place is outdated.
                result[result.count - 1].join(run)
                continue
            }
            if let last = result.last, last.items.isEmpty, let upper = last.start, let lower = run.start {
                result.removeLast()
                if upper.gap != nil {
                    run.start = upper
                    if lower.gap == nil { run.facts.newerCursor = last.facts.newerCursor }
                } else if lower.gap == nil {
                    run.start = upper
                    run.facts.isCursorGone = last.facts.isCursorGone
                }
                // A validator belongs to a cursor.
                run.facts.confirmation = nil
            }
            result.append(run)
        }
        while result.count > 1, let last = result.last, last.items.isEmpty, let start = last.start {
            result.removeLast()
            if start.gap != nil || tail == .unknown { tail = Tail(cursor: start.cursor) }
        }
        runs = result
    }

    /// Joins adjacent runs that together have at most `limit` items: each refresh moves a few items out of the newest run.
    private mutating func joinSmallRuns(_ limit: Int, except start: Start?) {
        var result: [Run] = []
        for run in runs {
            if let upper = result.last, upper.start != nil, upper.start != start, run.start != start,
                run.start?.gap == nil, upper.items.count + run.items.count <= limit, !upper.facts.isCursorGone
            {
                result[result.count - 1].join(run)
            } else {
                result.append(run)
            }
        }
        runs = result
    }

    /// Drops the last run if it is not known what follows it: otherwise the end of the list could never be loaded.
    private mutating func dropUnknownEnd() {
        guard tail == .unknown, let last = runs.last?.start, last.cursor != Self.newestCursor else { return }
        runs.removeLast()
        tail = .cursor(last.cursor)
        normalize()
    }
}

extension IncomingPage {
    /// Whether its request began before the one that a run came with.
    func isBefore(_ run: RunList.Run) -> Bool { times.asked < run.facts.asked }

    /// Whether its request began before an item was inserted.
    func isBefore(_ insertion: RunList.Insertion) -> Bool {
        startedAt <= WallTime(nanosecondsSinceEpoch: insertion.insertedAt)
    }
}
