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
    }

    package typealias Job = @Sendable () -> Void

    private var heap: [Entry] = []
    /// The jobs that will run. An entry of the heap without one was cancelled.
    private var jobs: [TimerID: Job] = [:]

    package init() {}

    /// The number of jobs that will run.
    package var count: Int { jobs.count }

    /// The earliest deadline. After a cancellation it may be that of a timer that will not run (`tidy`).
    package var next: MonotonicTime? { heap.first?.deadline }

    package func contains(_ id: TimerID) -> Bool { jobs[id] != nil }

    package mutating func add(_ id: TimerID, at deadline: MonotonicTime, _ job: @escaping Job) {
        jobs[id] = job
        insert(Entry(deadline: deadline, id: id))
    }

    private mutating func insert(_ entry: Entry) {
        heap.append(entry)
        var child = heap.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard isBefore(child, parent) else { break }
            heap.swapAt(child, parent)
            child = parent
        }
    }

    /// Cancels a timer.
    ///
    /// - Returns: its job, for the caller to run or to release; nil if it has run or was cancelled.
    @discardableResult package mutating func cancel(_ id: TimerID) -> Job? {
        let job = jobs.removeValue(forKey: id)
        tidy()
        if heap.count > 64, heap.count > 2 * jobs.count {
            let kept = heap.filter { jobs[$0.id] != nil }
            heap.removeAll(keepingCapacity: true)
            for entry in kept { insert(entry) }
        }
        return job
    }

    /// Removes and returns the due jobs, in order.
    package mutating func takeDue(_ now: MonotonicTime) -> [Job] {
        var due: [Job] = []
        while let first = takeFirst(now) { due.append(first.job) }
        tidy()
        return due
    }

    /// Removes and returns the first due job.
    package mutating func takeFirst(_ now: MonotonicTime) -> (id: TimerID, deadline: MonotonicTime, job: Job)? {
        while let first = heap.first, first.deadline <= now {
            removeFirst()
            if let job = jobs.removeValue(forKey: first.id) { return (first.id, first.deadline, job) }
        }
        return nil
    }

    /// Removes cancelled timers at the front, so that `next` is a timer that will run.
    package mutating func tidy() {
        while let first = heap.first, jobs[first.id] == nil { removeFirst() }
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
