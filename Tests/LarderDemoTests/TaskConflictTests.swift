import Larder
import LarderModels
import Testing

@testable import LarderDemo

@Suite("Tasks: rejected edits")
struct TaskConflictTests {
    private func task(_ title: String, assignee: String? = nil, due: String? = nil) -> WorkItem {
        WorkItem(
            id: "task_1",
            creatorID: "user_1",
            clientID: nil,
            title: title,
            createdAt: "2026-01-01T00:00:00Z",
            assigneeID: assignee,
            due: due,
            version: 1,
            updatedAt: "2026-01-01T00:00:00Z"
        )
    }

    @Test func `the edit between two values of a task makes one of the other`() {
        let old = task("old", assignee: "user_2", due: "2026-02-01")
        var new = task("new", assignee: nil, due: "2026-03-01")
        new.status = .done
        var edited = old
        TaskEdit(from: old, to: new).apply(to: &edited)
        #expect(edited == new)
        #expect(TaskEdit(from: old, to: old) == TaskEdit())
    }

    @Test func `of two edits of a task that become one, the first says what they started from`() throws {
        let (first, second) = (task("first"), task("second"))
        let earlier = TaskWrite.edit(id: "task_1", TaskEdit(title: "second"), base: first)
        let merged = try #require(earlier.merged(with: .edit(id: "task_1", TaskEdit(due: .clear), base: second)))
        #expect(merged == .edit(id: "task_1", TaskEdit(title: "second", due: .clear), base: first))
    }
}
