public import LarderModels

/// A change to the tasks that waits to be sent.
public enum TaskWrite: Codable, Sendable, Hashable {
    /// A new task, under the local ID that it has until the server has confirmed it.
    case create(WorkItem)
    /// An edit of some fields, and the task before it, by which a rejected edit is merged. Other fields keep the value that the server has.
    case edit(id: String, TaskEdit, base: WorkItem? = nil)
    case delete(id: String)

    /// The ID of the task.
    public var id: String {
        switch self {
        case .create(let task): task.id
        case .edit(let id, _, _), .delete(let id): id
        }
    }

    /// The one change that has the effect of this one and a later one; nil if there is none.
    func merged(with later: TaskWrite) -> TaskWrite? {
        switch (self, later) {
        case (.create(var task), .edit(_, let edit, _)):
            edit.apply(to: &task)
            return .create(task)
        case (.edit(let id, let earlier, let base), .edit(_, let edit, _)):
            return .edit(id: id, earlier.merged(with: edit), base: base)
        case (.edit, .delete): return later
        default: return nil
        }
    }

    /// The same change of the task under its server ID.
    func replacing(_ ids: [String: String]) -> TaskWrite {
        switch self {
        case .create: self
        case .edit(let id, let edit, let base): .edit(id: ids[id] ?? id, edit, base: base)
        case .delete(let id): .delete(id: ids[id] ?? id)
        }
    }
}

/// New values of some fields of a task: a JSON merge patch (RFC 7396).
public struct TaskEdit: Codable, Sendable, Hashable {
    /// A field that can be empty.
    public enum Field: Codable, Sendable, Hashable {
        case set(String)
        case clear

        /// The new value; nil for an empty field.
        public var value: String? { if case .set(let text) = self { text } else { nil } }
    }

    public var title: String?
    public var status: WorkItem.Status?
    /// The user ID of the person who has to do it.
    public var assignee: Field?
    /// The due date, `YYYY-MM-DD`.
    public var due: Field?

    public init(title: String? = nil, status: WorkItem.Status? = nil, assignee: Field? = nil, due: Field? = nil) {
        self.title = title
        self.status = status
        self.assignee = assignee
        self.due = due
    }

    /// The edit that makes one value of a task of another one.
    init(from old: WorkItem, to new: WorkItem) {
        func field(_ old: String?, _ new: String?) -> Field? { old == new ? nil : new.map { .set($0) } ?? .clear }
        title = old.title == new.title ? nil : new.title
        status = old.status == new.status ? nil : new.status
        assignee = field(old.assigneeID, new.assigneeID)
        due = field(old.due, new.due)
    }

    func apply(to task: inout WorkItem) {
        if let title { task.title = title }
        if let status { task.status = status }
        if let assignee { task.assigneeID = assignee.value }
        if let due { task.due = due.value }
    }

    func merged(with later: TaskEdit) -> TaskEdit {
        TaskEdit(
            title: later.title ?? title,
            status: later.status ?? status,
            assignee: later.assignee ?? assignee,
            due: later.due ?? due
        )
    }

    /// The body of a request.
    struct Patch: Encodable, Sendable {
        let edit: TaskEdit

        private enum Key: String, CodingKey {
            case title, status, due
            case assignee = "assigneeId"
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: Key.self)
            try container.encodeIfPresent(edit.title, forKey: .title)
            try container.encodeIfPresent(edit.status, forKey: .status)
            if let assignee = edit.assignee { try container.encode(assignee.value, forKey: .assignee) }
            if let due = edit.due { try container.encode(due.value, forKey: .due) }
        }
    }
}
