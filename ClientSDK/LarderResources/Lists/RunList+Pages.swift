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
        runs[index].facts.times = PageTimes(known.stated.updated(by: stated), at: time, asked: asked)
        runs[index].facts.times.fetchedAt = known.fetchedAt
    }

    /// Notes that the server no longer knows a cursor. The run stays apart, because it has an age of its own.
    mutating func forget(_ cursor: String) {
        guard let index = index(ofPage: cursor) else { return }
        runs[index].facts.isCursorGone = true
        runs[index].facts.confirmation = nil
    }

    /// Counts all runs as never confirmed.
    mutating func invalidatePages() {
        for index in runs.indices {
            runs[index].facts.times = .never
            runs[index].facts.confirmation = nil
        }
    }

    /// Drops the oldest runs, so that at most `maximum` items stay. Those can be loaded again.
    mutating func keep(atMost maximum: Int) {
        var (total, end) = (0, 0)
        for run in runs {
            guard total + run.items.count <= maximum else { break }
            (total, end) = (total + run.items.count, end + 1)
        }
        guard end < runs.count else { return }
        if total > 0, let start = runs[end].start {
            tail = Tail(cursor: start.cursor)
        } else {
            // One run alone exceeds the maximum.
            runs[end].items.removeSubrange(maximum...)
            tail = .unknown
            end += 1
        }
        runs.removeSubrange(end...)
        normalize()
    }

    /// Drops what is behind the first gap (`PagedResource.dropsBehindGap`).
    mutating func dropBehindGap() {
        guard let index = runs.firstIndex(where: { $0.start?.gap != nil }), let start = runs[index].start else {
            return
        }
        runs.removeSubrange(index...)
        tail = Tail(cursor: start.cursor)
        normalize()
    }
}
