import Larder
import LarderCoding
import LarderDemo
import LarderModels

/// `larder tasks`: lists by filter, and changes that are shown in these lists at once and queued until the server has confirmed
/// them.
struct TasksCommand {
    let context: CommandContext
    private var client: LarderClient { context.client }
    private var terminal: Terminal { context.terminal }

    func run(_ action: Arguments.TaskAction) async throws {
        switch action {
        case .list(let statuses, let assignee, let dueUntil, let order):
            var filter = TaskFilter(statuses: statuses, dueUntil: dueUntil, order: order)
            if let assignee { filter.assignee = try await self.assignee(assignee) }
            try await list(filter)
            await context.finish()
        case .add(let title, let who, let due):
            var person: String?
            if let who { person = try await self.person(who) }
            let added = try client.tasks.add(title, assignee: person, due: due)
            try await finish(added.operation, "new task: \(TextWidth.fit(title, 40))")
        case .set(let id, let status): try await edit(id, "status \(status.rawValue)") { $0.status = status }
        case .assign(let id, let who):
            var assignee: String?
            if let who { assignee = try await person(who) }
            try await edit(id, "assignee \(assignee ?? "nobody")") { [assignee] in $0.assigneeID = assignee }
        case .due(let id, let date): try await edit(id, "due \(date ?? "none")") { $0.due = date }
        case .delete(let id): try await finish(try client.tasks.delete(id), "delete \(id)")
        }
    }

    private func person(_ who: String) async throws -> String {
        if who == "me", let own = client.session.userID { return own }
        return try await context.personID(who)
    }

    private func assignee(_ who: String) async throws -> TaskFilter.Assignee {
        who == "nobody" || who == "none" ? .nobody : .person(try await person(who))
    }

    // MARK: Lists

    private func list(_ filter: TaskFilter) async throws {
        let reading = try await context.read(client.tasks.list(filter), called: "tasks")
        let tasks = context.first(context.arguments.limit ?? 50, of: reading.snapshot, called: "tasks")
        try await context.show(tasks, reading, orElse: "No such tasks.") {
            let names = await context.people(tasks.compactMap(\.assigneeID))
            return tasks.map { line($0, names) }
        }
    }

    private func line(_ task: WorkItem, _ names: [String: Profile]) -> String {
        let colors: [WorkItem.Status: Terminal.Color] = [.open: .yellow, .started: .cyan, .done: .green]
        let id = task.isPending ? "(new)" : task.id
        var parts = [
            terminal.paint(TextWidth.pad(id, 9), .dim),
            terminal.paint(TextWidth.pad(task.status.rawValue, 7), colors[task.status] ?? .dim),
            TextWidth.pad(task.due ?? "–", 10), TextWidth.pad(task.assigneeID.map { names.handle($0) } ?? "nobody", 10),
            task.title,
        ]
        if task.isPending { parts.append(terminal.paint("(not sent yet: \(task.id))", .yellow)) }
        return parts.joined(separator: "  ")
    }

    // MARK: Changes

    private func edit(_ id: String, _ text: String, _ change: @escaping @Sendable (inout WorkItem) -> Void) async throws
    {
        // Only a task that is stored can be edited.
        _ = await context.readQuietly(client.tasks.task(id))
        try await finish(try client.tasks.edit(id, change), "\(id): \(text)")
    }

    private func finish(_ operation: OperationID?, _ text: String) async throws {
        guard let operation else { return await context.finish() }
        try await context.settle(operation, text) { report(text, $0, $1, $2) }
    }

    private func report(_ change: String, _ outcome: String, _ text: String, _ color: Terminal.Color) {
        let members: [(String, JSONValue?)] = [("change", .string(change)), ("outcome", .string(outcome))]
        terminal.result(members, "\(change): " + terminal.paint(text, color))
    }
}
