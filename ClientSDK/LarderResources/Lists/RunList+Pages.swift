import LarderStorage
import LarderTime

/// The age of runs, and the size of a list.
extension RunList {
    /// The validator for a request for a page that has not changed since it was fetched, with the number of items to ask for.
    func confirmation(_ cursor: String) -> PageFacts.Confirmation? {
        guard let run = index(ofPage: cursor).map({ runs[$0] }), let known = run.facts.confirmation,
            known.digest == PageFacts.digest(run.items.lazy.map(\.key))
        else { return nil }
        return known
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
        guard self.confirmation(cursor) == confirmation, let index = index(ofPage: cursor) else { return }
        let known = runs[index].facts.times
        guard known.asked <= asked else { return }
        runs[index].facts.times = Freshness.Times(known.stated.updated(by: stated), at: time, asked: asked)
        runs[index].facts.times.fetchedAt = known.fetchedAt
        runs[index].facts.asked = max(runs[index].facts.asked, asked)
    }

    /// Notes that the server no longer knows a cursor. The run stays apart, because it has an age of its own.
    mutating func forget(_ cursor: String) {
        if let index = index(ofPage: cursor) { runs[index].forgetCursor() }
    }

    /// Drops the oldest runs, so that at most `maximum` items stay. Those can be loaded again.
    mutating func keep(atMost maximum: Int) {
        var total = 0
        // The runs before which the list may end, the last one at which it is too long.
        var ends: [Int] = []
        for (index, run) in runs.enumerated() {
            if total > 0 { ends.append(index) }
            total += run.items.count
            if total > maximum { break }
        }
        guard total > maximum else { return }
        // It goes on at a cursor if one is known.
        if let end = ends.last(where: { runs[$0].start?.cursor != nil }) ?? ends.last {
            self.end(at: end)
        } else if let end = runs.firstIndex(where: { !$0.items.isEmpty }) {
            // One run alone exceeds the maximum.
            runs[end].items.removeSubrange(maximum...)
            tail = .unknown
            runs.removeSubrange((end + 1)...)
        }
    }

    /// Drops the runs from one on, which can be loaded again.
    mutating func end(at index: Int) {
        tail = Tail(cursor: runs[index].start?.cursor)
        runs.removeSubrange(index...)
        normalize()
    }
}

extension RunList.Run {
    mutating func forgetCursor() {
        start?.cursor = nil
        facts.confirmation = nil
    }
}
