import LarderStorage
import LarderTime

/// Pages of a change feed: items that the server has placed among others, and that replace nothing.
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
        if let first = keys.firstIndex(where: known.contains) {
            insert(keys[..<first].map { Item($0, insertion) }, before: keys[first])
            for (upper, key) in zip(keys[first...], keys[(first + 1)...]) where !known.contains(key) {
                guard let place = place(of: upper) else { continue }
                runs[place.run].items.insert(Item(key, insertion), at: place.item + 1)
            }
        } else {
            // In front of a gap that no cursor leads into, they must not count as a part of what is behind it.
            insertion.isPlaced = cursor != nil || !hasGap
            insertInFront(keys.map { Item($0, insertion) }, cursor: cursor, hasGap: hasGap, stamp)
        }
        normalize()
    }

    /// Inserts items in front of another. In front of a page they are the last ones above its cursor, because they came after the page. A gap
    /// above it ends if the list begins there.
    private mutating func insert(_ new: [Item], before key: EntityKey) {
        guard !new.isEmpty, let place = place(of: key) else { return }
        let isFirst = !runs[place.run].items[..<place.item].contains(where: \.isPlaced)
        // The cursor is that of the first item.
        if isFirst { runs[place.run].facts.newerCursor = nil }
        if isFirst, let start = runs[place.run].start, start.cursor != nil,
            start.gap == nil || !runs[..<place.run].contains(where: \.hasPlaced)
        {
            runs[place.run - 1].items += new
            runs[place.run].start?.gap = nil
        } else {
            runs[place.run].items.insert(contentsOf: new, at: place.item)
        }
    }

    /// Inserts items of which the list has none behind the own items at its front.
    private mutating func insertInFront(_ new: [Item], cursor: String?, hasGap: Bool, _ stamp: Stamp) {
        let own = runs[0].items.prefix { $0.insertion?.isWaiting ?? false }.count
        var rest = runs[0].suffix(from: own)
        runs[0].items.replaceSubrange(own..., with: new)
        if runs.count > 1, !rest.hasPlaced, let start = runs[1].start, start.gap != nil, start.cursor == nil {
            // The list begins with this gap.
            runs[1].start?.cursor = cursor
        }
        // Otherwise what was asked for before may lack items between its own and these.
        if hasGap || !rest.hasPlaced { noteFed(stamp) }
        if let cursor, runs.count == 1, rest.items.isEmpty, hasGap || tail == .unknown {
            tail = .cursor(cursor)
        } else if let cursor, hasGap {
            rest.start = newGap(cursor)
            runs.insert(rest, at: 1)
        } else {
            runs[0].items += rest.items
        }
    }
}
