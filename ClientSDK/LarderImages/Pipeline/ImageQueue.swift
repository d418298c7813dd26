import LarderEvents

/// A queue by priority and then by arrival. A value without a lock; adding and taking are O(1), amortised.
///
/// A job whose priority changes is added again; its old entry is skipped because `holds` rejects it.
struct ImageQueue<Key: Hashable & Sendable>: Sendable {
    private var lanes = ImageRequest.Priority.allCases.map { _ in FIFO<(key: Key, serial: Int)>() }

    mutating func add(_ key: Key, serial: Int, _ priority: ImageRequest.Priority) {
        lanes[priority.rawValue].append((key, serial))
    }

    /// The next entry that is still valid, from the highest priority down to `lowest`.
    mutating func next(
        downTo lowest: ImageRequest.Priority,
        where holds: (Key, _ serial: Int, ImageRequest.Priority) -> Bool
    ) -> Key? {
        for priority in ImageRequest.Priority.allCases.reversed() where priority >= lowest {
            while let entry = lanes[priority.rawValue].popFirst() {
                if holds(entry.key, entry.serial, priority) { return entry.key }
            }
        }
        return nil
    }
}
