/// A dictionary whose values expire with the journal entries that set them.
///
/// The journal numbers its entries from 1. A value is removed when the entry that set it is no longer among the last `capacity`
/// entries. So there are at most `capacity` values.
struct RecentTable<Value> {
    private var values: [String: (entry: Int, value: Value)] = [:]
    /// The entries that set values, with their keys, in ascending order; those before `start` have expired.
    private var history: [(entry: Int, key: String)] = []
    private var start = 0
    private let capacity: Int

    init(capacity: Int) { self.capacity = capacity }

    var count: Int { values.count }

    subscript(key: String) -> Value? { values[key]?.value }

    /// Sets or removes a value.
    ///
    /// - Parameter entry: the number of the journal entry that sets the value; not smaller than in earlier calls.
    /// - Complexity: amortised O(1).
    mutating func set(_ value: Value?, for key: String, by entry: Int) {
        forget(before: entry - capacity + 1)
        guard let value else {
            values[key] = nil
            return
        }
        values[key] = (entry, value)
        history.append((entry, key))
    }

    private mutating func forget(before oldest: Int) {
        while start < history.count, history[start].entry < oldest {
            let (entry, key) = history[start]
            // A later entry may have set the key again.
            if values[key]?.entry == entry { values[key] = nil }
            start += 1
        }
        guard start > history.count / 2 else { return }
        history.removeFirst(start)
        start = 0
    }
}
