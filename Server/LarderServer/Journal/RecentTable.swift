/// A dictionary whose values expire with the journal entries that set them: a value is of no use when the entry that set it is no longer
/// among the last `capacity` entries. So there are at most twice as many values.
struct RecentTable<Value> {
    private var values: [String: (entry: Int, value: Value)] = [:]
    private var newest = 0
    private let capacity: Int

    init(capacity: Int) { self.capacity = capacity }

    var count: Int { values.count }

    subscript(key: String) -> Value? { values[key].flatMap { isRecent($0.entry) ? $0.value : nil } }

    /// Sets or removes a value.
    ///
    /// - Parameter entry: the number of the journal entry that sets the value; not smaller than in earlier calls.
    /// - Complexity: amortised O(1).
    mutating func set(_ value: Value?, for key: String, by entry: Int) {
        newest = entry
        values[key] = value.map { (entry, $0) }
        if values.count > 2 * capacity { values = values.filter { isRecent($0.value.entry) } }
    }

    private func isRecent(_ entry: Int) -> Bool { entry > newest - capacity }
}
