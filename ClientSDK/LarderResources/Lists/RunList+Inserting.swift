import LarderStorage
import LarderTime

/// Pages that are not requested for a place: pages of a change feed, and pages around an item.
extension RunList {
    /// Inserts items in the server's order, beside those that the list has, or in front of it. Removes nothing.
    ///
    /// - Parameters:
    ///   - keys: the items, newest first. Not empty.
    ///   - cursor: the cursor of the next older page; nil if it is not known.
    ///   - hasGap: whether items are missing between these and those that came before.
    ///   - time: when the items arrived.
    ///   - stamp: that of the event.
    mutating func takeFeedPage(
        _ keys: [EntityKey],
        cursor: String?,
        hasGap: Bool,
        at time: WallTime,
        _ stamp: Stamp
    ) {
        let new = Set(keys)
        var insertion = Insertion(insertedAt: time.nanosecondsSinceEpoch, isPlaced: true)
        // Items whose places were not known get them now.
        for index in runs.indices { runs[index].items.removeAll { !$0.isPlaced && new.contains($0.key) } }
        let known = Set(items).intersection(new)
        guard let first = keys.firstIndex(where: known.contains) else {
            // In front of a gap that no cursor leads into, they must not count as a part of what is behind it.
            insertion.isPlaced = cursor != nil || !hasGap
            let own = runs[0].items.prefix { $0.insertion?.isWaiting ?? false }
            var rest = runs[0]
            rest.items.removeFirst(own.count)
            runs[0].items = own + keys.map { Item($0, insertion) }
            if let cursor, runs.count > 1, case .gap(let number, Self.newestCursor)? = runs[1].start,
                !rest.hasPlaced
            {
                runs[1].start = .gap(number, cursor: cursor)
            }
            guard let cursor, hasGap || rest.items.isEmpty && runs.count == 1 && tail == .unknown else {
                runs[0].items += rest.items
                return normalize()
            }
            if rest.items.isEmpty, runs.count == 1 {
                tail = .cursor(cursor)
            } else {
                rest.start = newGap(cursor)
                runs.insert(rest, at: 1)
            }
            // What was asked for before may lack items between its own and these.
            noteFed(stamp)
            return normalize()
        }
        insert(keys[..<first].map { Item($0, insertion) }, before: keys[first])
        guard var place = firstPlace(where: { $0.key == keys[first] }) else { return }
        for key in keys[(first + 1)...] {
            if known.contains(key) {
                place = firstPlace { $0.key == key } ?? place
            } else {
                place.item += 1
                runs[place.run].items.insert(Item(key, insertion), at: place.item)
            }
        }
        normalize()
    }

    /// Inserts items in front of another. In front of a page they are the last ones above its cursor, because they came after the page. A gap
    /// above it ends if the list begins there.
    private mutating func insert(_ new: [Item], before key: EntityKey) {
        guard !new.isEmpty, let place = firstPlace(where: { $0.key == key }) else { return }
        if !runs[place.run].items[..<place.item].contains(where: \.isPlaced), let start = runs[place.run].start,
            start.cursor != Self.newestCursor,
            start.gap == nil || !runs[..<place.run].contains(where: \.hasPlaced)
        {
            runs[place.run - 1].items += new
            runs[place.run].start = .joined(start.cursor)
        } else {
            runs[place.run].items.insert(contentsOf: new, at: place.item)
        }
    }

    private func firstPlace(where isMatch: (Item) -> Bool) -> (run: Int, item: Int)? {
        for (run, known) in runs.enumerated() {
            if let item = known.items.firstIndex(where: isMatch) { return (run, item) }
        }
        return nil
    }

    /// Merges a page around an item. If it overlaps no loaded item, it is inserted by the order of the list, with gaps at both ends.
    ///
    /// If the list then has more than `keptMaximum` items, the oldest ones are dropped. If the page is among those, the list begins again
    /// with the page.
    ///
    /// - Parameter isNewer: whether the item with the first identifier comes before the one with the second.
    mutating func takeAround(_ page: IncomingPage, _ isNewer: (String, String) -> Bool, keptMaximum: Int) {
        let before = self
        mergeAround(page, isNewer)
        guard items.count > keptMaximum else { return }
        let merged = Set(items).intersection(page.keys)
        keep(atMost: keptMaximum)
        guard !merged.isSubset(of: items) else { return }
        self = before
        runs = [Run(items: runs.flatMap { $0.items.filter { !$0.isPlaced } })]
        tail = .unknown
        mergeAround(page, isNewer)
    }

    private mutating func mergeAround(_ page: IncomingPage, _ isNewer: (String, String) -> Bool) {
        var page = page
        let new = Set(page.keys)
        let shared = firstPlace { $0.isPlaced && new.contains($0.key) }
        if let shared, page.isBefore(runs[shared.run]), shared.item > 0 || runs[shared.run].start?.gap == nil,
            let index = page.keys.firstIndex(of: runs[shared.run].items[shared.item].key)
        {
            // A later page lacks what is in front.
            page.keys.removeFirst(index)
        }
        guard let top = page.keys.first else { return }
        var (above, below) = (runs, [Run]())
        // The page continues the items above it, unless a gap is between them.
        var start = Start.joined(Self.newestCursor)
        if let place = shared ?? firstPlace(where: { $0.isPlaced && isNewer(top.id, $0.key.id) }) {
            above = Array(runs[...place.run])
            above[place.run].items.removeSubrange(place.item...)
            below = Array(runs[place.run...])
            below[0].items.removeFirst(place.item)
            below[0].start = nil
            if let upper = above[place.run].start, place.item == 0 {
                if shared == nil, upper.gap == nil { above[place.run].start = newGap(upper.cursor) }
                above[place.run].facts.newerCursor = page.newerCursor
            }
        }
        if shared == nil {
            if below.isEmpty, tail.cursor != nil || tail == .unknown && above.contains(where: \.hasPlaced) {
                start = newGap(tail.cursor ?? Self.newestCursor)
            } else if above.count == 1, !above[0].hasPlaced {
                start = newGap(Self.newestCursor)
            }
        }
        place(page, start: start, above: above, below: below)
    }
}
