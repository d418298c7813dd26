import LarderCoding
import LarderSQLite
import LarderTime

struct TaskRow: Sendable {
    let row: Int64
    let creator: Int64
    var members: JSONObject
    var status: TaskStatus
    var assignee: Int64?
    var due: TaskDate?
    var version: Int64
    var updated: WallTime
}

/// A page of tasks in the order of its list.
struct TaskPage {
    var items: [(place: TaskPlace, json: [UInt8])] = []
    /// Whether the direction of the page has more items.
    var hasMore = false
}

/// Tasks, numbered in order of creation. Confined like its database.
struct TaskTable {
    let sql: SQL

    /// The row of the next task. Rows of deleted tasks are not reused.
    func nextRow() throws(SQLiteError) -> Int64 {
        try sql.integer("SELECT seq + 1 FROM sqlite_sequence WHERE name = 'tasks'") ?? 1
    }

    func add(_ task: TaskRow, clientID: String?) throws(SQLiteError) {
        try sql.run(
            """
            INSERT INTO tasks (id, creator, client_id, head, status, assignee, due, version, updated)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
            """,
            [
                task.row, task.creator, clientID, EntityHead.encode(task.members), task.status.rawValue, task.assignee,
                task.due?.days ?? TaskDate.none, task.version, task.updated,
            ]
        )
    }

    func find(_ row: Int64) throws -> TaskRow? {
        try sql.first(
            "SELECT creator, head, status, assignee, due, version, updated FROM tasks WHERE id = ?",
            [row]
        ) { task in
            TaskRow(
                row: row,
                creator: task.int64(0),
                members: try EntityHead.decode(task.bytes(1)),
                status: TaskStatus(rawValue: task.int64(2)) ?? .open,
                assignee: task.optional(3),
                due: TaskDate(stored: task.int64(4)),
                version: task.int64(5),
                updated: task.time(6)
            )
        }
    }

    /// The task that its creator's client has created under that ID.
    func row(creator: Int64, clientID: String) throws(SQLiteError) -> Int64? {
        try sql.integer("SELECT id FROM tasks WHERE creator = ? AND client_id = ?", [creator, clientID])
    }

    func replace(_ task: TaskRow) throws(SQLiteError) {
        try sql.run(
            "UPDATE tasks SET head = ?, status = ?, assignee = ?, due = ?, version = ?, updated = ? WHERE id = ?",
            [
                EntityHead.encode(task.members), task.status.rawValue, task.assignee,
                task.due?.days ?? TaskDate.none, task.version, task.updated, task.row,
            ]
        )
    }

    func delete(_ row: Int64) throws(SQLiteError) { try sql.run("DELETE FROM tasks WHERE id = ?", [row]) }

    /// Appends one task; nil if there is none.
    func append(_ row: Int64, to bytes: inout [UInt8]) throws(SQLiteError) -> EntityVersion? {
        try sql.first("\(Self.select) WHERE id = ?", [row]) { task in
            Self.append(task, to: &bytes)
            return task.version(5)
        }
    }

    /// The tasks next to a place, in the order of the list.
    ///
    /// - Parameters:
    ///   - place: nil for the beginning of the list, or for its end if the page goes backwards.
    ///   - isBackward: whether the tasks before the place are wanted.
    func page(
        _ query: TaskQuery,
        from place: TaskPlace?,
        isBackward: Bool,
        limit: Int,
        form: ItemForm = .whole
    ) throws(SQLiteError) -> TaskPage {
        let isAscending = query.order.isAscending != isBackward
        let edge: Int64 = isAscending ? .min : .max
        let found = try sql.all(
            scan(query, isAscending: isAscending),
            [
                place?.key ?? (query.order.isByDue ? edge : 0), place?.row ?? edge, query.oneStatus ?? query.statuses,
                query.assignee.stored, query.due.lowerBound, query.due.upperBound, limit + 1,
            ]
        ) { task in
            var json: [UInt8] = []
            switch form {
            case .whole: Self.append(task, to: &json)
            case .index: json.append(entryOf: EntityID(.task, task.int64(0)), version: task.int64(5))
            }
            return (TaskPlace(key: query.order.isByDue ? task.int64(4) : 0, row: task.int64(0)), json)
        }
        var page = TaskPage(items: Array(found.prefix(limit)), hasMore: found.count > limit)
        if isBackward { page.items.reverse() }
        return page
    }

    /// The scan whose results make the list: a part of an index in its order, so that its cost follows the page. The lists by creation are
    /// the table, in its order.
    func scan(_ query: TaskQuery, isAscending: Bool) -> SQLText {
        let comparison: SQLText = isAscending ? ">" : "<"
        let direction: SQLText = isAscending ? "ASC" : "DESC"
        let place: SQLText = query.order.isByDue ? "(due, id) \(comparison) (?1, ?2)" : "id \(comparison) ?2"
        let order: SQLText = query.order.isByDue ? "due \(direction), id" : "id"
        let status: SQLText = query.oneStatus == nil ? "(?3 >> status) & 1" : "status = ?3"
        // The sign keeps the list by creation from an index that has another order.
        let column: SQLText = query.order.isByDue ? "assignee" : "+assignee"
        let assignee: SQLText = query.assignee == .anyone ? "" : "AND \(column) IS nullif(?4, 0)"
        return """
            \(Self.select) WHERE \(place) AND \(status) \(assignee) AND due BETWEEN ?5 AND ?6
            ORDER BY \(order) \(direction) LIMIT ?7
            """
    }

    private static let select: SQLText = "SELECT id, head, status, assignee, due, version, updated FROM tasks"

    /// Appends the task of the current row: id, head, status, assignee, due, version and updated.
    private static func append(_ row: Statement, to bytes: inout [UInt8]) {
        row.append(1, to: &bytes)
        bytes.append(",\"status\":\"")
        bytes.append(contentsOf: (TaskStatus(rawValue: row.int64(2)) ?? .open).name.utf8)
        bytes.append("\",\"assigneeId\":")
        if let assignee = row.optional(3) {
            bytes.append(identifier: EntityID(.profile, assignee))
        } else {
            bytes.append("null")
        }
        bytes.append(",\"due\":")
        let due = TaskDate(stored: row.int64(4)).map { "\"\($0.text)\"" } ?? "null"
        bytes.append(contentsOf: due.utf8)
        bytes.append(row.version(5))
    }
}

extension TaskRow {
    init(
        _ row: Int64,
        creator: Int64,
        clientID: String? = nil,
        title: String,
        status: TaskStatus = .open,
        assignee: Int64? = nil,
        due: TaskDate? = nil,
        created: WallTime,
        updated: WallTime
    ) {
        self.init(
            row: row,
            creator: creator,
            members: JSONObject([
                "id": EntityID(.task, row).json, "creatorId": EntityID(.profile, creator).json,
                "clientId": clientID.map { .string($0) } ?? .null, "title": .string(title), "createdAt": created.json,
            ]),
            status: status,
            assignee: assignee,
            due: due,
            version: updated == created ? 1 : 2,
            updated: updated
        )
    }
}
