import LarderArguments
import LarderDemo
import LarderModels

extension Arguments {
    /// What `larder tasks` does.
    enum TaskAction: Sendable, Hashable {
        case list(statuses: Set<WorkItem.Status>, assignee: String?, dueUntil: String?, order: TaskFilter.Order)
        case add(title: String, assignee: String?, due: String?)
        case set(id: String, WorkItem.Status)
        /// The person is nil for nobody.
        case assign(id: String, to: String?)
        /// The date is nil for none.
        case due(id: String, date: String?)
        case delete(id: String)
    }

    /// The options of `larder tasks`.
    struct TaskOptions {
        var status: String?
        var assignee: String?
        var due: String?
        var sort: String?
    }

    func taskAction() throws(UsageError) -> TaskAction {
        func require(_ count: Int) throws(UsageError) {
            guard words.count == count else { throw Self.commands.wrong(name) }
        }
        switch words.first {
        case nil, "list": return try Self.list(tasks)
        case "add":
            try require(2)
            var due: String?
            if let text = tasks.due { due = try Self.date(text) }
            return .add(title: words[1], assignee: tasks.assignee.flatMap(Self.person), due: due)
        case "start", "done", "reopen":
            try require(2)
            let statuses: [String: WorkItem.Status] = ["start": .started, "done": .done, "reopen": .open]
            return .set(id: try Self.taskID(words[1]), statuses[words[0]] ?? .open)
        case "assign":
            try require(3)
            return .assign(id: try Self.taskID(words[1]), to: Self.person(words[2]))
        case "due":
            try require(3)
            return .due(id: try Self.taskID(words[1]), date: try Self.date(words[2]))
        case "delete":
            try require(2)
            return .delete(id: try Self.taskID(words[1]))
        default: throw Self.commands.wrong(name, words)
        }
    }

    private static func list(_ options: TaskOptions) throws(UsageError) -> TaskAction {
        var statuses: Set<WorkItem.Status> = [.open, .started]
        if let text = options.status {
            statuses = []
            for name in text.split(separator: ",", omittingEmptySubsequences: false) where text != "all" {
                guard let status = WorkItem.Status(rawValue: String(name)) else {
                    throw UsageError(message: "--status requires open, started, done or all, not '\(name)'")
                }
                statuses.insert(status)
            }
        }
        let orders: [String: TaskFilter.Order] = ["due": .due, "newest": .newest]
        guard let order = orders[options.sort ?? "due"] else {
            throw UsageError(message: "--sort requires due or newest, not '\(options.sort ?? "")'")
        }
        var until: String?
        if let due = options.due { until = try date(due) }
        return .list(statuses: statuses, assignee: options.assignee, dueUntil: until, order: order)
    }

    /// `task_7`, or `7` for short.
    private static func taskID(_ word: String) throws(UsageError) -> String {
        if Int64(word).map({ $0 > 0 }) ?? false { return "task_\(word)" }
        guard word.hasPrefix("local-") || (word.hasPrefix("task_") && Int64(word.dropFirst(5)) != nil) else {
            throw UsageError(message: "'\(word)' is not a task ID such as task_5; 'larder tasks' shows the IDs")
        }
        return word
    }

    private static func person(_ word: String) -> String? { word == "nobody" || word == "none" ? nil : word }

    private static func date(_ word: String) throws(UsageError) -> String? {
        if word == "none" { return nil }
        let digits = word.utf8.filter { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }
        guard word.utf8.count == 10, digits.count == 8, word.split(separator: "-").map(\.count) == [4, 2, 2] else {
            throw UsageError(message: "a due date is YYYY-MM-DD or none, not '\(word)'")
        }
        return word
    }
}
