import LarderStorage

/// Pages of a change feed.
extension TimelineLayout {
    /// Inserts items in the server's order, beside those that the list has, or in front of it. Removes nothing.
    ///
    /// - Parameters:
    ///   - keys: the items, newest first. Not empty.
    ///   - cursor: the cursor of the next older page; nil if it is not known.
    ///   - hasGap: whether items are missing between these and those that came before.
    ///   - head: the times of the newest page of the list.
    ///   - order: the order of the event.
    mutating func takeFeedPage(
        _ keys: [EntityKey],
        cursor: String?,
        hasGap: Bool,
        head: PageTimes,
        order: UInt64,
        _ orders: inout QueryOrders
    ) {
        let new = Set(keys)
        // Items whose places were not known get them now.
        elements.removeAll { $0.item.map { new.contains($0) && loose[$0] != nil } ?? false }
        for key in keys { loose[key] = nil }
        let known = Set(items).intersection(new)
        if let first = keys.firstIndex(where: known.contains) {
            var place = elements.firstIndex(of: .item(keys[first])) ?? 0
            elements.insert(contentsOf: keys[..<first].map { .item($0) }, at: place)
            place += first
            for key in keys[(first + 1)...] {
                if known.contains(key) {
                    place = elements.firstIndex(of: .item(key)) ?? place
                } else {
                    place += 1
                    elements.insert(.item(key), at: place)
                }
            }
        } else {
            let own = elements.prefix { $0.item.map { loose[$0]?.isOwn ?? false } ?? false }.count
            let rest = Array(elements[own...])
            elements.removeSubrange(own...)
            elements += keys.map { .item($0) }
            if let cursor, rest.isEmpty, tail == .unknown {
                tail = .cursor(cursor)
            } else if let cursor, hasGap {
                lastGap += 1
                elements.append(.gap(lastGap, cursor: cursor))
                pages[.gap(lastGap)] = PageFacts(head)
            }
            elements += rest
        }
        for key in keys { orders.items[key] = max(order, orders.items[key] ?? 0) }
        normalize()
    }
}
