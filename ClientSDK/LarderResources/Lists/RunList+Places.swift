import LarderStorage

/// The place in a timeline that a page is requested for.
enum TimelinePlace: Sendable, Hashable {
    /// After the last item.
    case tail
    case gap(Int)
    /// A page that was loaded before, by its cursor; nil: the newest page.
    case page(String?)
    /// At the older end of a gap.
    case newer(Int)
    /// Around an item, by its identifier.
    case around(String)
}

/// The places that pages are requested for, and the cursors that lead to them.
extension RunList {
    func index(ofGap number: Int) -> Int? { runs.firstIndex { $0.start?.gap == number } }

    func index(ofPage cursor: String) -> Int? { runs.firstIndex { $0.start == .joined(cursor) } }

    /// The number of runs above a place; nil if the place does not exist (any more).
    func runCount(above place: TimelinePlace) -> Int? {
        switch place {
        case .tail: tail.cursor == nil ? nil : runs.count
        case .gap(let number), .newer(let number): index(ofGap: number)
        case .page(let cursor): cursor.flatMap { index(ofPage: $0) }
        case .around: nil
        }
    }

    func has(_ place: TimelinePlace) -> Bool { runCount(above: place) != nil }

    /// The cursor of the page to request for a place; nil if the place does not exist, or if its cursor is not known.
    func cursor(of place: TimelinePlace) -> String? {
        guard let index = runCount(above: place) else { return nil }
        guard index < runs.count else { return tail.cursor }
        if case .newer = place { return runs[index].facts.newerCursor }
        return runs[index].start?.cursor
    }

    /// The cursors of the runs above a place up to a gap, the nearest first.
    func cursors(above place: TimelinePlace) -> [String] {
        runs[..<(runCount(above: place) ?? 0)].reversed().prefix { $0.start?.gap == nil }.compactMap {
            $0.start?.cursor
        }
    }

    /// The number of the nearest gap above a place.
    func gap(above place: TimelinePlace) -> Int? {
        runs[..<(runCount(above: place) ?? 0)].lazy.compactMap { $0.start?.gap }.last
    }

    /// Drops what is between a gap or the tail and the nearest gap above it, so that it continues where that gap begins: no cursor leads there
    /// any more. Those items can be loaded again; what no page has confirmed stays.
    mutating func widenGap(above place: TimelinePlace) {
        guard let end = runCount(above: place), let first = gap(above: place).flatMap({ index(ofGap: $0) }) else {
            return
        }
        let cursor = runs[first].start?.cursor
        if end == runs.count { tail = Tail(cursor: cursor) } else { runs[end].start?.cursor = cursor }
        let kept = runs[first..<end].flatMap { $0.items.filter { !$0.isPlaced } }
        runs.removeSubrange(first..<end)
        runs[first - 1].items += kept
        normalize()
    }
}
