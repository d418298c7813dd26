public import LarderModels

/// A condition and an order of tasks: the identity of a list of tasks.
public struct TaskFilter: Sendable, Hashable {
    /// The person whose tasks are meant.
    public enum Assignee: Sendable, Hashable {
        case anyone
        case nobody
        /// The user ID of a person.
        case person(String)
    }

    /// The order of a list of tasks. Raw values are those of `sort`.
    public enum Order: String, Sendable, Hashable, CaseIterable {
        /// Earliest due date first, tasks without one last.
        case due
        /// Newest first.
        case newest = "-created"
    }

    /// The statuses to include; none: all.
    public var statuses: Set<WorkItem.Status>
    /// The person whose tasks are included.
    public var assignee: Assignee
    /// The last due date to include, `YYYY-MM-DD`; nil: any, and tasks without one.
    public var dueUntil: String?
    /// How the list is sorted; it is a part of the identity, because the server sorts.
    public var order: Order

    public init(
        statuses: Set<WorkItem.Status> = [],
        assignee: Assignee = .anyone,
        dueUntil: String? = nil,
        order: Order = .due
    ) {
        self.statuses = statuses
        self.assignee = assignee
        self.dueUntil = dueUntil
        self.order = order
    }

    /// Whether a task belongs to the list.
    public func contains(_ task: WorkItem) -> Bool {
        if !statuses.isEmpty, !statuses.contains(task.status) { return false }
        switch assignee {
        case .anyone: break
        case .nobody: if task.assigneeID != nil { return false }
        case .person(let id): if task.assigneeID != id { return false }
        }
        guard let dueUntil else { return true }
        return task.due.map { $0 <= dueUntil } ?? false
    }

    /// Whether the first task comes before the second, as the server sorts them. A task that the server has not confirmed is the newest.
    public func areInIncreasingOrder(_ left: WorkItem, _ right: WorkItem) -> Bool {
        switch order {
        case .due:
            // Dates sort as text, and "~" is behind all of them.
            let (leftDue, rightDue) = (left.due ?? "~", right.due ?? "~")
            return leftDue == rightDue ? Self.isOlder(left, right) : leftDue < rightDue
        case .newest: return Self.isOlder(right, left)
        }
    }

    private static func isOlder(_ left: WorkItem, _ right: WorkItem) -> Bool {
        if left.isPending != right.isPending { return right.isPending }
        if left.isPending { return (left.createdAt, left.id) < (right.createdAt, right.id) }
        return left.id.utf8.count == right.id.utf8.count ? left.id < right.id : left.id.utf8.count < right.id.utf8.count
    }

    /// The parameters of the list's request, which are those of its key.
    var query: [(String, String?)] {
        let assignee: String? =
            switch assignee {
            case .anyone: nil
            case .nobody: "none"
            case .person(let id): id
            }
        let names = WorkItem.Status.allCases.filter(statuses.contains).map(\.rawValue)
        return [
            ("status", names.isEmpty ? nil : names.joined(separator: ",")), ("assignee", assignee),
            ("due", dueUntil.map { ".." + $0 }), ("sort", order.rawValue),
        ]
    }
}
