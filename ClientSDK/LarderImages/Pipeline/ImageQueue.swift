/// A queue by priority and then by arrival. A value without a lock; adding and taking are O(1), amortised.
///
/// A job whose priority changes is added again; its old entry is skipped because `holds` rejects it.
struct ImageQueue<Key: Hashable & Sendable>: Sendable {
    private struct Lane {
        var entries: [(key: Key, serial: Int)] = []
        var first = 0
    }

    private var lanes = ImageRequest.Priority.allCases.map { _ in Lane() }

    mutating func add(_ key: Key, serial: Int, _ priority: ImageRequest.Priority) {
        lanes[priority.rawValue].entries.append((key, serial))
    }

    /// The next entry that is still valid, from the highest priority down to `lowest`.
    mutating func next(
        downTo lowest: ImageRequest.Priority,
        where holds: (Key, _ serial: Int, ImageRequest.Priority) -> Bool
    ) -> Key? {
        for priority in ImageRequest.Priority.allCases.reversed() where priority >= lowest {
            while let entry = takeFirst(priority) {
                if holds(entry.key, entry.serial, priority) { return entry.key }
            }
        }
        return nil
    }

    private mutating func takeFirst(_ priority: ImageRequest.Priority) -> (key: Key, serial: Int)? {
        let lane = priority.rawValue
        guard lanes[lane].first < lanes[lane].entries.count else {
            lanes[lane] = Lane()
            return nil
        }
        let entry = lanes[lane].entries[lanes[lane].first]
        lanes[lane].first += 1
        if lanes[lane].first > 64, lanes[lane].first > lanes[lane].entries.count / 2 {
            lanes[lane].entries.removeFirst(lanes[lane].first)
            lanes[lane].first = 0
        }
        return entry
    }
}
