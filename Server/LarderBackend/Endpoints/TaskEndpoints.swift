import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime

/// The tasks of the team: every signed-in user may see, create, edit and delete them.
enum TaskEndpoints {
    static let routes: [Route] = [
        Route(.get, "/v1/tasks", .required, list),
        Route(.post, "/v1/tasks", .required, create),
        Route(.get, "/v1/tasks/{id}", .required) { call throws(Problem) in try call.read(.task) },
        Route(.patch, "/v1/tasks/{id}", .required, edit),
        Route(.delete, "/v1/tasks/{id}", .required) { call throws(Problem) in try call.delete(.task) },
    ]

    static let titleLength = 1...200

    // MARK: Reading

    private static func list(_ call: Call) throws(Problem) -> Reply? {
        let pageParameters = ["status", "assignee", "due", "sort", "after", "before", "limit", "fields"]
        if let reply = try call.batch(.task, insteadOf: pageParameters) { return reply }
        let form = try call.itemForm()
        let query = try query(call)
        let limit = try call.limit(default: 50)
        let digest = query.digest
        let start = try call.sortedPageStart(.tasks, owner: digest)
        let place = start.cursor.map { TaskPlace(key: $0.key, row: $0.row) }
        return try call.reply { store in
            let all = try store.entities.all(.all(.task)).compactMap(query.place).sorted(by: query.precedes)
            var range = 0..<min(limit, all.count)
            var edge: TaskPlace?
            if var place {
                // The tasks before the place, or behind it: a cursor is exclusive.
                let first = all.firstIndex { start.isBackward ? !query.precedes($0, place) : query.precedes(place, $0) }
                let end = first ?? all.count
                range = start.isBackward ? max(0, end - limit)..<end : end..<min(end + limit, all.count)
                // An empty page is followed by the task at the place.
                place.row = max(0, place.row + (query.order.isAscending != start.isBackward ? 1 : -1))
                edge = place
            }
            let page = all[range]
            let next = range.upperBound < all.count ? page.last ?? edge : nil
            let previous = range.lowerBound > 0 ? page.first ?? edge : nil
            func cursor(_ place: TaskPlace?) -> Cursor? {
                place.map { Cursor(.tasks, owner: digest, row: $0.row, key: $0.key) }
            }
            let items = try page.map { try store.json(.task, $0.row, form: form) }
            return ListPage.representation(items, (cursor(next), cursor(previous)))
        }
    }

    /// The filter and order in the query of a request.
    private static func query(_ call: Call) throws(Problem) -> TaskQuery {
        var query = TaskQuery()
        if let text = call.query.first("status") {
            query.statuses = []
            for name in text.split(separator: ",", omittingEmptySubsequences: false) {
                guard let status = TaskStatus(named: name) else {
                    throw call.invalid("status", "must be a comma-separated list of \(TaskStatus.names)")
                }
                query.statuses.insert(status)
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

    // MARK: Writing

    private static func create(_ call: Call) throws(Problem) -> Reply? {
        let body = try call.jsonObject()
        let reader = BodyReader(body)
        if body["title"] == nil { reader.require("title") }
        let changes = TaskChanges(body, reader)
        let clientID = reader.string("clientId", length: 1...64)
        try reader.check()
        let creator = call.viewer
        return try Idempotency.run(call, isKeyRequired: false) { store, commit in
            if let clientID, let task = try store.entities.find(.task, named: clientID, in: creator), !task.isDeleted {
                // The client's ID identifies the task: a retry finds the task of the first attempt, whatever it is by now.
                return .written(try store.json(.task, task.id.row))
            }
            let row = try store.entities.next(.task).row
            var task = EntityRow.task(
                row,
                creator: creator,
                clientID: clientID,
                title: "",
                created: commit.now,
                updated: commit.now
            )
            try changes.apply(to: &task, in: store)
            try commit.add(task, to: store)
            return .written(try store.json(.task, row), createdAt: "/v1/tasks/task_\(row)")
        }
    }

    private static func edit(_ call: Call) throws(Problem) -> Reply? {
        let id = EntityID(.task, try call.row(.task))
        let patch = try call.jsonObject(orMediaType: "application/merge-patch+json")
        let reader = BodyReader(patch)
        let changes = TaskChanges(patch, reader)
        try reader.check()
        // With a key a repeated edit has one effect, and does not undo a later edit of somebody else.
        return try Idempotency.run(call, isKeyRequired: false) { store, commit in
            var task = try call.own(id, in: store, isConditionRequired: true)
            try changes.apply(to: &task, in: store)
            try commit.save(task, in: store)
            return .written(try store.json(.task, id.row))
        }
    }
}

/// The members of a task that a request sets. A merge patch (RFC 7396) keeps the members that it does not have.
private struct TaskChanges: Sendable {
    private var members: [(name: String, value: JSONValue)] = []
    private var assignee: EntityID?

    init(_ object: JSONObject, _ reader: BodyReader) {
        if let title = reader.patched("title", length: TaskEndpoints.titleLength) {
            members.append(("title", .string(title)))
        }
        if let status = reader.patched("status", length: 0...64) {
            if TaskStatus(named: status) == nil { reader.fail("status", "must be \(TaskStatus.names)") }
            members.append(("status", .string(status)))
        }
        let person = reader.value("assigneeId")
        if object["assigneeId"] != nil {
            assignee = person?.string.flatMap { EntityID(.profile, parsing: $0) }
            if person != nil, assignee == nil {
                reader.fail("assigneeId", "must be null or an identifier such as \"user_1\"")
            }
            members.append(("assigneeId", person ?? .null))
        }
        let due = reader.value("due")
        if object["due"] != nil {
            if let due, due.string.flatMap({ TaskDate(parsing: $0) }) == nil {
                reader.fail("due", "must be null or a date such as \"2026-07-01\"")
            }
            members.append(("due", due ?? .null))
        }
    }

    func apply(to task: inout EntityRow, in store: Store) throws {
        if let assignee, try store.entities.find(assignee) == nil {
            throw ProblemType.validationFailed(
                "One member is invalid.",
                at: "/assigneeId",
                "is not the identifier of a profile"
            )
        }
        for (name, value) in members { task.members[name] = value }
    }
}
