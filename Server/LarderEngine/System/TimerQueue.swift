package import LarderTime

/// Identifies a timer for cancellation.
package struct TimerID: Sendable, Hashable {
    package let rawValue: UInt64

    package init(rawValue: UInt64) { self.rawValue = rawValue }
}

/// Jobs by deadline: a binary heap. A value; its owner synchronises access.
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

    /// Cancelled timers are removed when they are the first, or when they are the majority.
    ///
    /// - Returns: removed jobs. An owner that holds a lock releases them after it: their deinitialisation may call the owner.
    @discardableResult package mutating func cancel(_ id: TimerID) -> [@Sendable () -> Void] {
        cancelled.insert(id)
        let removed = tidy()
        guard cancelled.count > 64, cancelled.count > heap.count / 2 else { return removed }
        let all = heap
        let kept = heap.filter { !cancelled.contains($0.id) }
        cancelled.removeAll()
        heap.removeAll(keepingCapacity: true)
        for entry in kept { add(entry.id, at: entry.deadline, entry.job) }
        return removed + all.map(\.job)
    }

    /// Removes and returns the due jobs, in order.
    package mutating func takeDue(_ now: MonotonicTime) -> [@Sendable () -> Void] {
        var due: [@Sendable () -> Void] = []
        while let first = heap.first, first.deadline <= now {
            removeFirst()
            if cancelled.remove(first.id) == nil { due.append(first.job) }
        }
        tidy()
        return due
    }

    /// Removes and returns the first due job.
    package mutating func takeFirst(
        _ now: MonotonicTime
    ) -> (id: TimerID, deadline: MonotonicTime, job: @Sendable () -> Void)? {
        while let first = heap.first, first.deadline <= now {
            removeFirst()
            if cancelled.remove(first.id) == nil { return (first.id, first.deadline, first.job) }
        }
        return nil
    }

    /// Removes cancelled timers at the front, so that `next` is a timer that will run.
    @discardableResult package mutating func tidy() -> [@Sendable () -> Void] {
        var removed: [@Sendable () -> Void] = []
        while let first = heap.first, cancelled.contains(first.id) {
            removeFirst()
            cancelled.remove(first.id)
            removed.append(first.job)
        }
        if heap.isEmpty { cancelled.removeAll(keepingCapacity: true) }
        return removed
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

    /// Equal deadlines are ordered by insertion.
    private func isBefore(_ left: Int, _ right: Int) -> Bool {
        (heap[left].deadline, heap[left].id.rawValue) < (heap[right].deadline, heap[right].id.rawValue)
    }
}
