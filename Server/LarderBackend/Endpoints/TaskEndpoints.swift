import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime

/// The tasks of the team: every signed-in user may see, create, edit and delete them.
enum TaskEndpoints {
    static let routes: [Route] = [
        Route(.get, "/v1/tasks", .required, list),
        Route(.post, "/v1/tasks", .required, create),
        Route(.get, "/v1/tasks/{id}", .required, read),
        Route(.patch, "/v1/tasks/{id}", .required, edit),
        Route(.delete, "/v1/tasks/{id}", .required, delete),
    ]

    static let titleLength = 1...200

    // MARK: Reading

    private static func list(_ call: Call) throws(Problem) -> Reply? {
        let pageParameters: [StaticString] = [
            "status", "assignee", "due", "sort", "after", "before", "limit", "fields",
        ]
        if let rows = try call.batch(.task, insteadOf: pageParameters) { return try call.reply(to: rows, .task) }
        let form = try call.itemForm()
        let query = try query(call)
        let limit = try call.limit(default: 50)
        let digest = query.digest
        let start = try call.sortedPageStart(.tasks, owner: digest)
        let place = start.cursor.map { TaskPlace(key: $0.key, row: $0.row) }
        return try call.reply { store in
            let page = try store.tasks.page(
                query,
                from: place,
                isBackward: start.isBackward,
                limit: limit,
                form: form
            )
            // The other side of the page, which an empty page begins at the requested place.
            var inner = start.isBackward ? page.items.last?.place : page.items.first?.place
            if inner == nil, var place {
                // A cursor is exclusive, and the task at the place belongs to the other side.
                place.row = max(0, place.row + (query.order.isAscending != start.isBackward ? 1 : -1))
                inner = place
            }
            var other: TaskPlace?
            if let inner {
                let isBackward = !start.isBackward
                let beyond = try store.tasks.page(query, from: inner, isBackward: isBackward, limit: 1)
                if !beyond.items.isEmpty { other = inner }
            }
            let outer = start.isBackward ? page.items.first?.place : page.items.last?.place
            let more = page.hasMore ? outer : nil
            func cursor(_ place: TaskPlace?) -> Cursor? {
                place.map { Cursor(.tasks, owner: digest, row: $0.row, key: $0.key) }
            }
            let (next, previous) = start.isBackward ? (other, more) : (more, other)
            return ListPage.representation(page.items.map(\.json), (cursor(next), cursor(previous)))
        }
    }

    /// The filter and order in the query of a request.
    private static func query(_ call: Call) throws(Problem) -> TaskQuery {
        var query = TaskQuery()
        if let text = call.query.first("status") {
            query.statuses = 0
            for name in text.split(separator: ",", omittingEmptySubsequences: false) {
                guard let status = TaskStatus(named: name) else {
                    throw call.invalid("status", "must be a comma-separated list of \(TaskStatus.names)")
                }
                query.statuses |= 1 << status.rawValue
            }
        }
        switch call.query.first("assignee") {
        case nil: break
        case "none": query.assignee = .nobody
        case "me": query.assignee = .person(call.viewer)
        case let text?:
            guard let id = EntityID(.profile, parsing: text) else {
                throw call.invalid("assignee", "must be the identifier of a profile, `me` or `none`")
            }
            query.assignee = .person(id.row)
        }
        if let text = call.query.first("due") {
            guard let range = TaskQuery.dueRange(parsing: text) else {
                throw call.invalid("due", "must be a date, a range such as `2026-07-01..2026-07-31`, or `none`")
            }
            query.due = range
        }
        if let text = call.query.first("sort") {
            guard let order = TaskQuery.Order(rawValue: text) else {
                let names = TaskQuery.Order.allCases.map { "`\($0.rawValue)`" }.joined(separator: ", ")
                throw call.invalid("sort", "must be one of \(names)")
            }
            query.order = order
        }
        return query
    }

    private static func read(_ call: Call) throws(Problem) -> Reply? {
        let row = try call.row(.task)
        return try call.reply { try call.representation(of: .task, row, in: $0) }
    }

    // MARK: Writing

    private static func create(_ call: Call) throws(Problem) -> Reply? {
        let body = try call.jsonObject()
        var reader = BodyReader(body)
        reader.require("title")
        let title = reader.string("title", length: titleLength)
        let clientID = reader.string("clientId", length: 1...64)
        var changes = TaskChanges(body, &reader)
        changes.title = title
        try reader.check()
        let creator = call.viewer
        return try Idempotency.run(call, isKeyRequired: false) { store, commit in
            if let clientID, let row = try store.tasks.row(creator: creator, clientID: clientID) {
                // The client's ID identifies the task: a retry finds the task of the first attempt, whatever it is by now.
                return .existing(try store.json(.task, row))
            }
            let row = try store.tasks.nextRow()
            var task = TaskRow(
                row,
                creator: creator,
                clientID: clientID,
                title: "",
                created: commit.now,
                updated: commit.now
            )
            try changes.apply(to: &task, in: store)
            try store.tasks.add(task, clientID: clientID)
            try commit.record(.task, row, audience: .signedIn, version: 1, in: store)
            return .created(at: "/v1/tasks/task_\(row)", try store.json(.task, row))
        }
    }

    private static func edit(_ call: Call) throws(Problem) -> Reply? {
        let row = try call.row(.task)
        let patch = try call.jsonObject(orMediaType: "application/merge-patch+json")
        var reader = BodyReader(patch)
        var changes = TaskChanges(patch, &reader)
        if patch["title"] != nil {
            reader.require("title")
            changes.title = reader.string("title", length: titleLength)
        }
        try reader.check()
        // With a key a repeated edit has one effect, and does not undo a later edit of somebody else.
        return try Idempotency.run(call, isKeyRequired: false) { store, commit in
            var task = try existing(row, for: call, in: store, isConditionRequired: true)
            try changes.apply(to: &task, in: store)
            task.version += 1
            task.updated = commit.now
            try store.tasks.replace(task)
            try commit.record(.task, row, audience: .signedIn, version: task.version, in: store)
            return .existing(try store.json(.task, row))
        }
    }

    private static func delete(_ call: Call) throws(Problem) -> Reply? {
        let row = try call.row(.task)
        try call.write { store, commit in
            let task = try existing(row, for: call, in: store, isConditionRequired: false)
            try store.tasks.delete(row)
            try commit.record(.task, row, deleted: true, audience: .signedIn, version: task.version + 1, in: store)
        }
        return .noContent
    }

    /// A task, after the conditions of the request were checked.
    private static func existing(
        _ row: Int64,
        for call: Call,
        in store: Store,
        isConditionRequired: Bool
    ) throws -> TaskRow {
        guard let task = try store.tasks.find(row) else {
            throw ProblemType.notFound("There is no task task_\(row).")
        }
        try call.checkConditions(
            on: try call.representation(of: .task, row, in: store),
            version: task.version,
            isRequired: isConditionRequired
        )
        return task
    }
}

/// The members of a task that a request sets. A merge patch (RFC 7396) keeps the members that it does not have.
struct TaskChanges: Sendable {
    var title: String?
    private var status: TaskStatus?
    /// The outer optional says whether the request has the member, the inner one whether it is null.
    private var assignee: Int64??
    private var due: TaskDate??

    init(_ object: JSONObject, _ reader: inout BodyReader) {
        if object["status"] != nil {
            reader.require("status")
            if let name = reader.string("status", length: 0...64) {
                status = TaskStatus(named: name)
                if status == nil { reader.fail("status", "must be \(TaskStatus.names)") }
            }
        }
        if object["assigneeId"] != nil {
            assignee = .some(nil)
            if let value = reader.value("assigneeId") {
                if let text = value.string, let id = EntityID(.profile, parsing: text) {
                    assignee = id.row
                } else {
                    reader.fail("assigneeId", "must be null or an identifier such as \"user_1\"")
                }
            }
        }
        if object["due"] != nil {
            due = .some(nil)
            if let value = reader.value("due") {
                if let text = value.string, let date = TaskDate(parsing: text) {
                    due = date
                } else {
                    reader.fail("due", "must be null or a date such as \"2026-07-01\"")
                }
            }
        }
    }

    func apply(to task: inout TaskRow, in store: Store) throws {
        if let title { task.members["title"] = .string(title) }
        if let status { task.status = status }
        if let assignee {
            if let row = assignee, try store.profiles.find(row) == nil {
                throw ProblemType.validationFailed(
                    "One member is invalid.",
                    errors: [Problem.FieldError(pointer: "/assigneeId", detail: "is not the identifier of a profile")]
                )
            }
            task.assignee = assignee
        }
        if let due { task.due = due }
    }
}
