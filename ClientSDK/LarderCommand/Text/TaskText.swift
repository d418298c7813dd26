import LarderDemo
import LarderModels

/// Describes changes to tasks.
enum TaskText {
    /// `task_7: status done, due 2026-07-01`.
    static func text(_ write: TaskWrite) -> String {
        switch write {
        case .create(let task): "new task: \(TextWidth.fit(TextWidth.clean(task.title), 40))"
        case .edit(let id, let edit, _): "\(TextWidth.clean(id)): \(text(edit))"
        case .delete(let id): "delete \(TextWidth.clean(id))"
        }
    }

    static func text(_ edit: TaskEdit) -> String {
        var parts: [String] = []
        if let title = edit.title { parts.append("title '\(TextWidth.fit(TextWidth.clean(title), 40))'") }
        if let status = edit.status { parts.append("status \(status.rawValue)") }
        if let assignee = edit.assignee { parts.append("assignee \(assignee.value ?? "nobody")") }
        if let due = edit.due { parts.append("due \(due.value ?? "none")") }
        return parts.joined(separator: ", ")
    }
}
