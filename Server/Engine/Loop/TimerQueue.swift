package import LarderTime

/// Names a timer, to cancel it.
package struct TimerID: Sendable, Hashable {
    package let rawValue: UInt64

    package init(rawValue: UInt64) { self.rawValue = rawValue }
}

/// What is to be done at which time: a binary heap. A value for its owner to protect.
package struct TimerQueue {
    private struct Entry {
        let deadline: MonotonicTime
        let id: TimerID
        let job: @Sendable () -> Void
    }

    private var heap: [Entry] = []
    private var cancelled: Set<TimerID> = []

    package init() {}

    /// The earliest deadline.
    package var next: MonotonicTime? { heap.first?.deadline }

    package mutating func add(_ id: TimerID, at deadline: MonotonicTime, _ job: @escaping @Sendable () -> Void) {
        heap.append(Entry(deadline: deadline, id: id, job: job))
        var child = heap.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard isBefore(child, parent) else { break }
            heap.swapAt(child, parent)
            child = parent
        }
    }

    /// Cancelled timers leave the heap when their time comes, or when they are the majority in it.
    package mutating func cancel(_ id: TimerID) {
        cancelled.insert(id)
        guard cancelled.count > 64, cancelled.count > heap.count / 2 else { return }
        let kept = heap.filter { !cancelled.contains($0.id) }
        cancelled.removeAll()
        heap.removeAll(keepingCapacity: true)
        for entry in kept { add(entry.id, at: entry.deadline, entry.job) }
    }

    /// Takes out the jobs whose time has come, in its order.
    package mutating func takeDue(_ now: MonotonicTime) -> [@Sendable () -> Void] {
        var due: [@Sendable () -> Void] = []
        while let first = heap.first, first.deadline <= now {
            removeFirst()
            if cancelled.remove(first.id) == nil { due.append(first.job) }
        }
        if heap.isEmpty { cancelled.removeAll(keepingCapacity: true) }
        return due
    }

    /// Takes out the first job whose time has come.
    package mutating func takeFirst(
        _ now: MonotonicTime
    ) -> (id: TimerID, deadline: MonotonicTime, job: @Sendable () -> Void)? {
        while let first = heap.first, first.deadline <= now {
            removeFirst()
            if cancelled.remove(first.id) == nil { return (first.id, first.deadline, first.job) }
        }
        return nil
    }

    /// Drops what was cancelled from the front, so that `next` is a timer that will run.
    package mutating func tidy() {
        while let first = heap.first, cancelled.contains(first.id) {
            removeFirst()
            cancelled.remove(first.id)
        }
    }

    private mutating func removeFirst() {
        let last = heap.removeLast()
        guard !heap.isEmpty else { return }
        heap[0] = last
        var parent = 0
        while true {
            var smallest = parent
            for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count && isBefore(child, smallest) {
                smallest = child
            }
            guard smallest != parent else { return }
            heap.swapAt(parent, smallest)
            parent = smallest
        }
    }

    /// Equal deadlines come in the order in which they were set.
    private func isBefore(_ left: Int, _ right: Int) -> Bool {
        (heap[left].deadline, heap[left].id.rawValue) < (heap[right].deadline, heap[right].id.rawValue)
    }
}
