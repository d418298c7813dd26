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
    /// When the page was fetched.
    var times: PageTimes
    var validator: String?
    /// The cursor of the page of newer items; nil if the server has stated none.
    var newerCursor: String?
    /// The times of the newest page of the list before the merge.
    var head: PageTimes
    /// Whether the merge confirms a list that was invalid as a whole: then it confirms no other page.
    var isOnlyConfirmed = false
    /// The order of the latest request that confirmed the newest page, also by "not modified".
    var confirmedOrder: UInt64 = 0
    /// The stamp of its request, when the request began, and when the page is stored. The content of the page is not
    /// older than the beginning.
    var order: UInt64
    var startedAt: WallTime
    var receivedAt: WallTime
    /// How long an inserted item stays although pages do not contain it (`PagedResource.settlingTime`).
    var settlingTime: Duration
    /// The inserted items that do not stay, because the page has other items in their place.
    var displaced: Set<EntityKey> = []
}

extension TimelineLayout {
    /// Merges the newest page. It defines the start of the list and the range down to its last overlap with the list.
    mutating func takeNewest(_ page: IncomingPage, _ rule: GapPolicy, _ orders: inout QueryOrders) {
        if page.confirmedOrder > orders.head {
            orders.head = page.confirmedOrder
            for key in loadedPages.first.map(confirmedItems) ?? [] {
                orders.items[key] = max(page.confirmedOrder, orders.items[key] ?? 0)
            }
        }
        let isLate = orders.head > page.order
        var page = page
        page.displaced = displaced(by: page)
        if page.isOnlyConfirmed, !isLate { invalidatePages() }
        let earlier = itemTimes(head: page.isOnlyConfirmed ? .never : page.head)
        let above = laterRuns(page, orders)
        guard
            let woven = weave(
                Array(above),
                Array(elements[above.endIndex...]),
                page,
                orders,
                isNewest: true,
                isLate: isLate
            )
        else {
            // Something newer was merged before this page, and without an overlap the position of this one is unknown.
            if isLate || !above.isEmpty { return }
            let new = Set(page.keys)
            let rest = elements.filter { $0.item.map { !new.contains($0) } ?? true }
            let hasConfirmed = rest.contains { $0.item.map { loose[$0] == nil } ?? false }
            let isBehindGap = page.cursor != nil && hasConfirmed && rule == .keepBehindGap
            var front = protected(rest, page, orders, isLooseOnly: page.cursor != nil)
            if isBehindGap {
                // There may be unknown items between the page and the list. An inserted item that the page does not
                // contain belongs behind the gap, unless it was inserted after the request began.
                front.removeAll { element in
                    element.item.flatMap { loose[$0] }.map {
                        WallTime(nanosecondsSinceEpoch: $0.insertedAt) < page.startedAt
                    } ?? false
                }
            }
            if page.cursor != nil, let last = page.keys.last.flatMap({ elements.firstIndex(of: .item($0)) }) {
                // Inserted items that follow the page's last one belong to the pages below.
                let below = Set(elements[last...])
                front.removeAll { below.contains($0) }
            }
            elements = joined(front, page.keys.map { .item($0) })
            if let cursor = page.cursor {
                if isBehindGap {
                    let kept = Set(front)
                    elements.append(newGap(cursor))
                    elements += rest.filter { !kept.contains($0) }
                } else {
                    tail = .cursor(cursor)
                }
            } else {
                tail = .end
            }
            confirm(page, &orders, isHead: true)
            assignPages(page, earlier, start: nil, isLate: false, isNewest: true)
            return dropUnknownEnd()
        }
        elements = woven
        confirm(page, &orders, isHead: !isLate)
        assignPages(page, earlier, start: nil, isLate: isLate, isNewest: true)
        if !isLate { dropUnknownEnd() }
    }

    /// The elements down to the last gap that has above it only items that came after the request began, and that the page does not contain:
    /// the page belongs below it (a page of a feed, see `takeFeedPage`).
    private func laterRuns(_ page: IncomingPage, _ orders: QueryOrders) -> ArraySlice<Element> {
        let new = Set(page.keys)
        let count = elements.prefix { element in
            element.item.map { (orders.items[$0] ?? 0) > page.order && !new.contains($0) } ?? true
        }.count
        let end = elements[..<count].lastIndex(where: \.isGap).map { $0 + 1 } ?? 0
        return elements[..<end].contains { $0.item != nil } ? elements[..<end] : []
    }

    /// Drops what follows the last place from which a page can be requested, if it is not known what follows it: otherwise the end of the
    /// list could never be loaded.
    private mutating func dropUnknownEnd() {
        guard tail == .unknown,
            let index = elements.lastIndex(where: { $0.startCursor.map { $0 != Self.newestCursor } ?? false }),
            let cursor = elements[index].startCursor
        else { return }
        elements.removeSubrange(index...)
        tail = .cursor(cursor)
        normalize()
    }

    /// The items that were inserted before the request, between others that the page does not have beside each other. Their place is not
    /// known: between items of the page they would be shown in a wrong order. Own items stay, because a person has just created them.
    private func displaced(by page: IncomingPage) -> Set<EntityKey> {
        guard !loose.isEmpty else { return [] }
        let places = Dictionary(page.keys.enumerated().map { ($1, $0) }, uniquingKeysWith: { first, _ in first })
        var (result, run) = (Set<EntityKey>(), [EntityKey]())
        var previous: Int?
        for key in elements.compactMap(\.item) {
            guard let place = places[key] else {
                if let known = loose[key], !known.isOwn,
                    WallTime(nanosecondsSinceEpoch: known.insertedAt) < page.startedAt
                {
                    run.append(key)
                }
                continue
            }
            if let previous, place != previous + 1 { result.formUnion(run) }
            (previous, run) = (place, [])
        }
        if let previous, previous + 1 < page.keys.count, page.cursor != nil { result.formUnion(run) }
        return result
    }

    /// Merges a page that was requested for a place. Nothing changes if the place no longer exists, or if its cursor
    /// has changed and the page does not continue the loaded items.
    mutating func take(_ page: IncomingPage, at place: TimelinePlace, cursor: String, _ orders: inout QueryOrders) {
        let earlier = itemTimes(head: page.head)
        let prefix: [Element]
        let rest: [Element]
        let present: String
        switch place {
        case .tail:
            guard case .cursor(let known) = tail else { return }
            (prefix, rest, present) = (elements, [], known)
        case .gap(let number):
            guard let index = index(ofGap: number), case .gap(_, let known) = elements[index] else { return }
            (prefix, rest, present) = (Array(elements[..<index]), Array(elements[(index + 1)...]), known)
        case .page(nil), .newer, .around: return
        case .page(let known?), .renewal(let known):
            guard let index = elements.firstIndex(of: .boundary(known)) else { return }
            (prefix, rest, present) = (Array(elements[..<index]), Array(elements[(index + 1)...]), known)
        }
        var page = page
        if present != cursor {
            // The cursor of the place has changed since the request: the items of the page behind the last loaded item
            // are still valid.
            guard let last = prefix.last(where: { $0.item != nil })?.item, let index = page.keys.firstIndex(of: last),
                index + 1 < page.keys.count
            else { return }
            page.keys.removeSubrange(...index)
        }
        let confirmed = Set(prefix.compactMap(\.item).filter { loose[$0] == nil })
        let all = page.keys
        page.keys.removeAll { confirmed.contains($0) }
        page.displaced = displaced(by: page)
        let new = Set(page.keys)
        let above = prefix.filter { $0.item.map { !new.contains($0) } ?? true } + [.boundary(present)]
        if let woven = weave(above, rest, page, orders, isNewest: false, isLate: false) {
            elements = woven
        } else {
            let behind = rest.filter { $0.item.map { !new.contains($0) } ?? true }
            elements = above + page.keys.map { .item($0) }
            if let cursor = page.cursor {
                switch place {
                case .gap(let number): elements.append(.gap(number, cursor: cursor))
                case .page, .renewal: elements.append(newGap(cursor))
                case .tail, .newer, .around: tail = .cursor(cursor)
                }
                elements += behind
            } else {
                elements += protected(behind, page, orders)
                tail = .end
            }
        }
        page.keys = all
        confirm(page, &orders, isHead: false)
        let confirmation = page.validator.flatMap { validator -> PageFacts.Confirmation? in
            guard present == cursor else { return nil }
            return PageFacts.Confirmation(validator: validator, limit: page.limit, digest: PageFacts.digest(all))
        }
        assignPages(page, earlier, start: .boundary(present), confirmation: confirmation, isLate: false)
    }

    /// Merges a page between `prefix` and `rest`; nil if the page does not overlap `rest`.
    ///
    /// Only items that a page has confirmed count as overlap: the neighbours of an inserted item are unknown.
    mutating func weave(
        _ prefix: [Element],
        _ rest: [Element],
        _ page: IncomingPage,
        _ orders: QueryOrders,
        isNewest: Bool,
        isLate: Bool
    ) -> [Element]? {
        let shared = common(page.keys, rest)
        guard let first = shared.first, let last = shared.last else { return nil }
        let fixed = Set(shared.map { page.keys[$0] })
        let new = Set(page.keys)
        // Items of the page outside of the common order are removed here and inserted where the page has them.
        let rest = rest.filter { $0.item.map { fixed.contains($0) || !new.contains($0) } ?? true }
        let places = Dictionary(
            rest.enumerated().compactMap { index, element in element.item.map { ($0, index) } },
            uniquingKeysWith: { first, _ in first }
        )
        func place(_ index: Int) -> Int { places[page.keys[index]] ?? 0 }
        func isNewer(_ key: EntityKey) -> Bool { (orders.items[key] ?? 0) > page.order }

        let front = Array(rest[..<place(first)])
        let before = page.keys[..<first].map { Element.item($0) }
        var result = prefix
        if isNewest, isLate {
            if let gap = front.lastIndex(where: \.isGap) {
                result += front[...gap] + joined(protected(front[(gap + 1)...], page, orders), before)
            } else if prefix.isEmpty {
                result += front
            } else {
                result += joined(protected(front, page, orders), before)
            }
        } else if front.filter({ $0.item != nil || $0.isGap }) == before {
            result += front
        } else {
            result += joined(protected(front, page, orders), before)
        }
        for (upper, lower) in zip(shared, shared.dropFirst()) {
            result.append(.item(page.keys[upper]))
            let known = Array(rest[(place(upper) + 1)..<place(lower)])
            let said = page.keys[(upper + 1)..<lower].map { Element.item($0) }
            let isKnownBetter =
                isNewer(page.keys[upper]) && isNewer(page.keys[lower]) && !known.contains(where: \.isGap)
            if isKnownBetter || known.filter({ $0.item != nil || $0.isGap }) == said {
                result += known
            } else {
                // A late page renews nothing behind a gap that it closes, or behind the start of another page: without a boundary these
                // items would have the times of the page above.
                if isLate, let start = known.lazy.compactMap(\.startCursor).first { result.append(.boundary(start)) }
                result += joined(protected(known, page, orders), said)
            }
        }
        result.append(.item(page.keys[last]))
        let behind = Array(rest[(place(last) + 1)...])
        let said = page.keys[(last + 1)...].map { Element.item($0) }
        // A late page adds no items to the newest page, because their times would be those of the newest page.
        if isLate, prefix.isEmpty, !rest[..<place(last)].contains(where: { $0.item == nil }) { return result + behind }
        return result + mergeTail(behind, said, page, orders, isNewer: isNewer(page.keys[last]))
    }

    /// The elements behind the last overlapping item.
    private mutating func mergeTail(
        _ behind: [Element],
        _ said: [Element],
        _ page: IncomingPage,
        _ orders: QueryOrders,
        isNewer: Bool
    ) -> [Element] {
        let next = behind.firstIndex { $0.item != nil || $0.isGap }
        guard let cursor = page.cursor else {
            if isNewer, next.map({ !behind[$0].isGap }) ?? (tail == .end || said.isEmpty) { return behind }
            tail = .end
            return joined(protected(behind, page, orders), said, isTail: true)
        }
        guard let next else {
            if isNewer, tail == .end || said.isEmpty { return behind }
            tail = .cursor(cursor)
            return said
        }
        if case .gap(let number, _) = behind[next] {
            if isNewer, said.isEmpty { return behind }
            return said + [.gap(number, cursor: cursor)] + behind[(next + 1)...]
        }
        guard said.isEmpty else {
            if isNewer, let key = behind[next].item, (orders.items[key] ?? 0) > page.order { return behind }
            return said + [newGap(cursor)] + behind
        }
        return behind
    }

    /// The indices of a longest sequence of keys that are confirmed in the rest in the same order. Cost: O(n²) for n
    /// such keys.
    private func common(_ keys: [EntityKey], _ rest: [Element]) -> [Int] {
        var places: [EntityKey: Int] = [:]
        for (index, element) in rest.enumerated() {
            if let key = element.item, loose[key] == nil { places[key] = index }
        }
        let candidates = keys.indices.filter { places[keys[$0]] != nil }
        var best: [(length: Int, previous: Int?)] = []
        for (position, index) in candidates.enumerated() {
            var entry: (length: Int, previous: Int?) = (1, nil)
            for earlier in 0..<position
            where (places[keys[candidates[earlier]]] ?? 0) < (places[keys[index]] ?? 0)
                && best[earlier].length >= entry.length
            {
                entry = (best[earlier].length + 1, earlier)
            }
            best.append(entry)
        }
        var result: [Int] = []
        var next = best.indices.max { best[$0].length < best[$1].length }
        while let position = next {
            result.append(candidates[position])
            next = best[position].previous
        }
        return result.reversed()
    }

    /// The elements that stay although the page does not contain them: items that a later request has confirmed, and
    /// items that were inserted within the settling time, which the server's replicas may not have yet.
    func protected(
        _ elements: some Sequence<Element>,
        _ page: IncomingPage,
        _ orders: QueryOrders,
        isLooseOnly: Bool = false
    ) -> [Element] {
        elements.filter { element in
            guard let key = element.item else { return false }
            if let loose = loose[key] {
                if page.displaced.contains(key) { return false }
                let insertedAt = WallTime(nanosecondsSinceEpoch: loose.insertedAt)
                // An item of the future was inserted before the clock was set back.
                return page.startedAt - insertedAt < page.settlingTime && insertedAt <= page.receivedAt
            }
            return !isLooseOnly && (orders.items[key] ?? 0) > page.order
        }
    }

    /// Items of a page together with elements that stay although the page does not contain them: each of these behind the item of the
    /// page that it follows now, and before all if it follows none. At the end of the list it is the reverse: each stays before the item
    /// that follows it, and behind all if none follows.
    private func joined(_ kept: [Element], _ said: [Element], isTail: Bool = false) -> [Element] {
        guard !kept.isEmpty, !said.isEmpty else { return kept + said }
        let (staying, named) = (Set(kept), Set(said))
        var neighbours: [Element: [Element]] = [:]
        var outer: [Element] = []
        var anchor: Element?
        for element in isTail ? elements.reversed() : elements {
            if named.contains(element) {
                anchor = element
            } else if staying.contains(element) {
                if let anchor { neighbours[anchor, default: []].append(element) } else { outer.append(element) }
            }
        }
        guard isTail else { return outer + said.flatMap { [$0] + (neighbours[$0] ?? []) } }
        return said.flatMap { (neighbours[$0] ?? []).reversed() + [$0] } + outer.reversed()
    }

    private mutating func newGap(_ cursor: String) -> Element {
        lastGap += 1
        return .gap(lastGap, cursor: cursor)
    }

    /// Records the items that a page has confirmed.
    mutating func confirm(_ page: IncomingPage, _ orders: inout QueryOrders, isHead: Bool) {
        let there = Set(items)
        for key in page.keys where there.contains(key) {
            loose[key] = nil
            orders.items[key] = max(page.order, orders.items[key] ?? 0)
        }
        orders.items = orders.items.filter { there.contains($0.key) }
        if isHead { orders.head = max(orders.head, page.order) }
        normalize()
    }
}
