package import LarderTime

/// Identifies a timer for cancellation.
package struct TimerID: Sendable, Hashable {
    package let rawValue: UInt64

    package init(rawValue: UInt64) { self.rawValue = rawValue }
}

/// Jobs by deadline. A value; its owner synchronises access.
package struct TimerQueue {
    package typealias Job = @Sendable () -> Void

    /// The last one is due first. Equal deadlines are ordered by insertion.
    private var entries: [(deadline: MonotonicTime, id: TimerID, job: Job)] = []

    package init() {}

    /// The number of jobs that will run.
    var count: Int { entries.count }

    package var next: MonotonicTime? { entries.last?.deadline }

    package mutating func add(_ id: TimerID, at deadline: MonotonicTime, _ job: @escaping Job) {
        var (low, high) = (0, entries.count)
        while low < high {
            let middle = (low + high) / 2
            let other = entries[middle]
            if (other.deadline, other.id.rawValue) > (deadline, id.rawValue) { low = middle + 1 } else { high = middle }
        }
        entries.insert((deadline, id, job), at: low)
    }

    /// Cancels a timer.
    ///
    /// - Returns: its job, for the caller to run or to release; nil if it has run or was cancelled.
    @discardableResult package mutating func cancel(_ id: TimerID) -> Job? {
        entries.firstIndex { $0.id == id }.map { entries.remove(at: $0).job }
    }

    mutating func takeDue(_ now: MonotonicTime) -> [Job] {
        var due: [Job] = []
        while let first = takeFirst(now) { due.append(first.job) }
        return due
    }

    package mutating func takeFirst(_ now: MonotonicTime) -> (deadline: MonotonicTime, id: TimerID, job: Job)? {
        guard let first = entries.last, first.deadline <= now else { return nil }
        return entries.removeLast()
    }
}
