/// Work that waits, by priority and then by arrival. A value for its owner to protect; adding and taking are O(1), amortised.
///
/// A job whose priority changes is added again; its old entry is passed over when it is met, because it does not hold any more.
struct ImageQueue<Key: Hashable & Sendable>: Sendable {
    private struct Lane {
        var entries: [(key: Key, serial: Int)] = []
        var first = 0
    }

    private var lanes = ImagePriority.allCases.map { _ in Lane() }

    mutating func add(_ key: Key, serial: Int, _ priority: ImagePriority) {
        lanes[priority.rawValue].entries.append((key, serial))
    }

    /// The next entry that holds, from the highest priority down to `lowest`.
    mutating func next(
        downTo lowest: ImagePriority,
        where holds: (Key, _ serial: Int, ImagePriority) -> Bool
    ) -> Key? {
        for priority in ImagePriority.allCases.reversed() where priority >= lowest {
            while let entry = takeFirst(priority) {
                if holds(entry.key, entry.serial, priority) { return entry.key }
            }
        }
        return nil
    }

    private mutating func takeFirst(_ priority: ImagePriority) -> (key: Key, serial: Int)? {
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
