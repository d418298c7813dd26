import LarderCoding

/// A filter and an order of the list of tasks.
struct TaskQuery: Sendable, Hashable {
    enum Order: String, Sendable, CaseIterable {
        /// Earliest due date first, tasks without one last.
        case due
        /// The reverse of `due`.
        case latestDue = "-due"
        /// Oldest first.
        case created
        /// Newest first.
        case newest = "-created"

        var isByDue: Bool { self == .due || self == .latestDue }

        var isAscending: Bool { self == .due || self == .created }
    }

    enum Assignee: Sendable, Hashable {
        case anyone
        case nobody
        case person(Int64)
    }

    var statuses = Set(TaskStatus.allCases)
    var assignee = Assignee.anyone
    /// The due dates to include, in days. The upper end `TaskDate.none` includes tasks without a date.
    var due: ClosedRange<Int64> = .min...TaskDate.none
    var order = Order.due

    /// Identifies the query in cursors, so that a cursor of one list cannot be used in another.
    var digest: Int64 {
        let text = "\(statuses.map(\.rawValue).sorted()) \(assignee) \(due) \(order.rawValue)"
        return Int64(ContentHash.hash64(Array(text.utf8).span) >> 1)
    }

    /// The place of a task in the list; nil if it is not in it.
    func place(of task: EntityRow) -> TaskPlace? {
        let days = task.members["due"]?.string.flatMap { TaskDate(parsing: $0)?.days } ?? TaskDate.none
        let status = task.members["status"]?.string.flatMap { TaskStatus(named: $0) } ?? .open
        let person = task.members["assigneeId"]?.string
        let isAssigned =
            switch assignee {
            case .anyone: true
            case .nobody: person == nil
            case .person(let row): person == EntityID(.profile, row).text
            }
        guard isAssigned, statuses.contains(status), due.contains(days) else { return nil }
        return TaskPlace(key: order.isByDue ? days : 0, row: task.id.row)
    }

    func precedes(_ place: TaskPlace, _ other: TaskPlace) -> Bool {
        let (place, other) = ((place.key, place.row), (other.key, other.row))
        return order.isAscending ? place < other : place > other
    }

    /// Reads a filter of due dates: `2026-07-01`, `2026-07-01..2026-07-31` with either end optional, or `none`.
    static func dueRange(parsing text: String) -> ClosedRange<Int64>? {
        if text == "none" { return TaskDate.none...TaskDate.none }
        if let date = TaskDate(parsing: text) { return date.days...date.days }
        guard let dots = text.firstRange(of: "..") else { return nil }
        let (first, last) = (text[..<dots.lowerBound], text[dots.upperBound...])
        guard !(first.isEmpty && last.isEmpty), let lower = first.isEmpty ? .min : TaskDate(parsing: first)?.days,
            // Without an upper end, every date is included, but not a task without one.
            let upper = last.isEmpty ? TaskDate.none - 1 : TaskDate(parsing: last)?.days, lower <= upper
        else { return nil }
        return lower...upper
    }
}

/// The place of a task in a sorted list.
struct TaskPlace: Sendable, Hashable {
    /// The due date in days; 0 in a list that is sorted by creation.
    var key: Int64
    var row: Int64
}
