/// A priority queue whose elements are found by an identifier. Changes cost O(log n), the minimum O(1).
struct IndexedHeap<ID: Hashable & Sendable, Priority: Comparable & Sendable>: Sendable {
    private var items: [(id: ID, priority: Priority)] = []
    private var positions: [ID: Int] = [:]

    var isEmpty: Bool { items.isEmpty }

    /// The element with the smallest priority.
    var first: (id: ID, priority: Priority)? { items.first }

    /// All identifiers, in no particular order.
    var ids: some Sequence<ID> { positions.keys }

    /// Adds an element, or changes its priority.
    mutating func set(_ id: ID, _ priority: Priority) {
        let index: Int
        if let known = positions[id] {
            index = known
            items[known].priority = priority
        } else {
            index = items.count
            items.append((id, priority))
            positions[id] = index
        }
        restore(at: index)
    }

    /// Removes an element if it is there.
    mutating func remove(_ id: ID) {
        guard let index = positions.removeValue(forKey: id) else { return }
        let last = items.removeLast()
        guard index < items.count else { return }
        items[index] = last
        positions[last.id] = index
        restore(at: index)
    }

    /// Removes the element with the smallest priority.
    mutating func popFirst() -> (id: ID, priority: Priority)? {
        guard let first = items.first else { return nil }
        remove(first.id)
        return first
    }

    /// Moves an element to its place after its priority has changed.
    private mutating func restore(at start: Int) {
        var index = start
        while index > 0, items[index].priority < items[(index - 1) / 2].priority {
            swap(index, (index - 1) / 2)
            index = (index - 1) / 2
        }
        while true {
            let left = 2 * index + 1
            guard left < items.count else { return }
            let right = left + 1
            let smaller = right < items.count && items[right].priority < items[left].priority ? right : left
            guard items[smaller].priority < items[index].priority else { return }
            swap(index, smaller)
            index = smaller
        }
    }

    private mutating func swap(_ first: Int, _ second: Int) {
        items.swapAt(first, second)
        positions[items[first].id] = first
        positions[items[second].id] = second
    }
}
