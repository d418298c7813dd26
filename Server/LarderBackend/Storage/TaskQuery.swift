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

        /// The number in the statement: -1, 0 or the row of the person.
        var stored: Int64 {
            switch self {
            case .anyone: -1
            case .nobody: 0
            case .person(let row): row
            }
        }
    }

    /// The statuses to include, as a bit for each raw value.
    var statuses: Int64 = 0b111
    var assignee = Assignee.anyone
    /// The due dates to include, as stored. The upper end `TaskDate.none` includes tasks without a date.
    var due: ClosedRange<Int64> = .min...TaskDate.none
    var order = Order.due

    /// Identifies the query in cursors, so that a cursor of one list cannot be used in another.
    var digest: Int64 {
        let text = "\(statuses) \(assignee.stored) \(due.lowerBound) \(due.upperBound) \(order.rawValue)"
        return Int64(ContentHash.hash64(Array(text.utf8).span) >> 1)
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
    /// The due date as stored; 0 in a list that is sorted by creation.
    var key: Int64
    var row: Int64
}
