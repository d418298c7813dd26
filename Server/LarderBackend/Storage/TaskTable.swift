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
final class TaskTable {
    private let insert: Statement
    private let select: Statement
    private let selectByClientID: Statement
    private let update: Statement
    private let remove: Statement
    private let next: Statement
    /// Scans of the filtered list, each in one direction.
    private let byDueAscending: Statement
    private let byDueDescending: Statement
    private let byStatusAscending: Statement
    private let byStatusDescending: Statement
    private let byAssigneeAscending: Statement
    private let byAssigneeDescending: Statement
    private let byRowAscending: Statement
    private let byRowDescending: Statement

    init(_ database: Database) throws(SQLiteError) {
        insert = try database.prepare(
            """
            INSERT INTO tasks (id, creator, client_id, head, status, assignee, due, version, updated)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
            """
        )
        select = try database.prepare(
            "SELECT id, head, status, assignee, due, version, updated, creator FROM tasks WHERE id = ?"
        )
        selectByClientID = try database.prepare("SELECT id FROM tasks WHERE creator = ? AND client_id = ?")
        update = try database.prepare(
            "UPDATE tasks SET head = ?, status = ?, assignee = ?, due = ?, version = ?, updated = ? WHERE id = ?"
        )
        remove = try database.prepare("DELETE FROM tasks WHERE id = ?")
        next = try database.prepare("SELECT seq + 1 FROM sqlite_sequence WHERE name = 'tasks'")
        byDueAscending = try database.prepare(
            """
            SELECT id, head, status, assignee, due, version, updated FROM tasks
            WHERE (due, id) > (?1, ?2) AND (?3 >> status) & 1 AND (?4 < 0 OR ifnull(assignee, 0) = ?4)
            AND due BETWEEN ?5 AND ?6 ORDER BY due, id LIMIT ?7
            """
        )
        byDueDescending = try database.prepare(
            """
            SELECT id, head, status, assignee, due, version, updated FROM tasks
            WHERE (due, id) < (?1, ?2) AND (?3 >> status) & 1 AND (?4 < 0 OR ifnull(assignee, 0) = ?4)
            AND due BETWEEN ?5 AND ?6 ORDER BY due DESC, id DESC LIMIT ?7
            """
        )
        byStatusAscending = try database.prepare(
            """
            SELECT id, head, status, assignee, due, version, updated FROM tasks
            WHERE status = ?3 AND ?4 < 0 AND (due, id) > (?1, ?2)
            AND due BETWEEN ?5 AND ?6 ORDER BY due, id LIMIT ?7
            """
        )
        byStatusDescending = try database.prepare(
            """
            SELECT id, head, status, assignee, due, version, updated FROM tasks
            WHERE status = ?3 AND ?4 < 0 AND (due, id) < (?1, ?2)
            AND due BETWEEN ?5 AND ?6 ORDER BY due DESC, id DESC LIMIT ?7
            """
        )
        byAssigneeAscending = try database.prepare(
            """
            SELECT id, head, status, assignee, due, version, updated FROM tasks
            WHERE assignee IS nullif(?4, 0) AND (?3 >> status) & 1 AND (due, id) > (?1, ?2)
            AND due BETWEEN ?5 AND ?6 ORDER BY due, id LIMIT ?7
            """
        )
        byAssigneeDescending = try database.prepare(
            """
            SELECT id, head, status, assignee, due, version, updated FROM tasks
            WHERE assignee IS nullif(?4, 0) AND (?3 >> status) & 1 AND (due, id) < (?1, ?2)
            AND due BETWEEN ?5 AND ?6 ORDER BY due DESC, id DESC LIMIT ?7
            """
        )
        byRowAscending = try database.prepare(
            """
            SELECT id, head, status, assignee, due, version, updated FROM tasks
            WHERE id > ?2 AND ?1 = 0 AND (?3 >> status) & 1 AND (?4 < 0 OR ifnull(assignee, 0) = ?4)
            AND due BETWEEN ?5 AND ?6 ORDER BY id LIMIT ?7
            """
        )
        byRowDescending = try database.prepare(
            """
            SELECT id, head, status, assignee, due, version, updated FROM tasks
            WHERE id < ?2 AND ?1 = 0 AND (?3 >> status) & 1 AND (?4 < 0 OR ifnull(assignee, 0) = ?4)
            AND due BETWEEN ?5 AND ?6 ORDER BY id DESC LIMIT ?7
            """
        )
    }

    /// The row of the next task. Rows of deleted tasks are not reused.
    func nextRow() throws(SQLiteError) -> Int64 {
        defer { next.reset() }
        return try next.step() ? next.int64(0) : 1
    }

    func add(_ task: TaskRow, clientID: String?) throws(SQLiteError) {
        try insert.bind(task.row, at: 1)
        try insert.bind(task.creator, at: 2)
        try insert.bind(clientID, at: 3)
        try insert.bind(EntityHead.encode(task.members), at: 4)
        try insert.bind(task.status.rawValue, at: 5)
        try insert.bind(task.assignee, at: 6)
        try insert.bind(task.due?.days ?? TaskDate.none, at: 7)
        try insert.bind(task.version, at: 8)
        try insert.bind(task.updated.milliseconds, at: 9)
        try insert.run()
    }

    func find(_ row: Int64) throws -> TaskRow? {
        defer { select.reset() }
        try select.bind(row, at: 1)
        guard try select.step() else { return nil }
        return TaskRow(
            row: row,
            creator: select.int64(7),
            members: try EntityHead.decode(select.bytes(1)),
            status: TaskStatus(rawValue: select.int64(2)) ?? .open,
            assignee: select.isNull(3) ? nil : select.int64(3),
            due: TaskDate(stored: select.int64(4)),
            version: select.int64(5),
            updated: WallTime(milliseconds: select.int64(6))
        )
    }

    /// The task that its creator's client has created under that ID.
    func row(creator: Int64, clientID: String) throws(SQLiteError) -> Int64? {
        defer { selectByClientID.reset() }
        try selectByClientID.bind(creator, at: 1)
        try selectByClientID.bind(clientID, at: 2)
        return try selectByClientID.step() ? selectByClientID.int64(0) : nil
    }

    func replace(_ task: TaskRow) throws(SQLiteError) {
        try update.bind(EntityHead.encode(task.members), at: 1)
        try update.bind(task.status.rawValue, at: 2)
        try update.bind(task.assignee, at: 3)
        try update.bind(task.due?.days ?? TaskDate.none, at: 4)
        try update.bind(task.version, at: 5)
        try update.bind(task.updated.milliseconds, at: 6)
        try update.bind(task.row, at: 7)
        try update.run()
    }

    func delete(_ row: Int64) throws(SQLiteError) {
        try remove.bind(row, at: 1)
        try remove.run()
    }

    /// Appends one task; nil if there is none.
    func append(_ row: Int64, to bytes: inout [UInt8]) throws(SQLiteError) -> EntityVersion? {
        defer { select.reset() }
        try select.bind(row, at: 1)
        guard try select.step() else { return nil }
        Self.appendCurrent(select, to: &bytes)
        return EntityVersion(select.int64(5), WallTime(milliseconds: select.int64(6)))
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
        var found: [(place: TaskPlace, json: [UInt8])] = []
        let scans = scans(query, isAscending: isAscending)
        for (statement, statuses) in scans {
            defer { statement.reset() }
            try statement.bind(place?.key ?? (query.order.isByDue ? edge : 0), at: 1)
            try statement.bind(place?.row ?? edge, at: 2)
            try statement.bind(statuses, at: 3)
            try statement.bind(query.assignee.stored, at: 4)
            try statement.bind(query.due.lowerBound, at: 5)
            try statement.bind(query.due.upperBound, at: 6)
            try statement.bind(Int64(limit + 1), at: 7)
            while try statement.step() {
                var json: [UInt8] = []
                switch form {
                case .whole: Self.appendCurrent(statement, to: &json)
                case .index: json.append(entryOf: EntityID(.task, statement.int64(0)), version: statement.int64(5))
                }
                let place = TaskPlace(key: query.order.isByDue ? statement.int64(4) : 0, row: statement.int64(0))
                found.append((place, json))
            }
        }
        if scans.count > 1 {
            found.sort { left, right in
                let (first, second) = isAscending ? (left.place, right.place) : (right.place, left.place)
                return (first.key, first.row) < (second.key, second.row)
            }
        }
        var page = TaskPage(items: Array(found.prefix(limit)), hasMore: found.count > limit)
        if isBackward { page.items.reverse() }
        return page
    }

    /// The scans whose results make the list, each with its third parameter: a status, or the set of statuses.
    ///
    /// A list with a filter is a part of an index in its order, or the union of such parts: its cost follows the page. The lists
    /// by creation are the table, in its order.
    func scans(_ query: TaskQuery, isAscending: Bool) -> [(statement: Statement, statuses: Int64)] {
        guard query.order.isByDue else {
            return [(isAscending ? byRowAscending : byRowDescending, query.statuses)]
        }
        if query.assignee != .anyone {
            return [(isAscending ? byAssigneeAscending : byAssigneeDescending, query.statuses)]
        }
        guard query.statuses != TaskQuery().statuses else {
            return [(isAscending ? byDueAscending : byDueDescending, query.statuses)]
        }
        return TaskStatus.allCases.filter { query.statuses >> $0.rawValue & 1 == 1 }.map {
            (isAscending ? byStatusAscending : byStatusDescending, $0.rawValue)
        }
    }

    /// Appends the task of a statement's current row: id, head, status, assignee, due, version and updated in columns 0 to 6.
    private static func appendCurrent(_ statement: Statement, to bytes: inout [UInt8]) {
        statement.append(1, to: &bytes)
        bytes.append(",\"status\":\"")
        bytes.append(contentsOf: (TaskStatus(rawValue: statement.int64(2)) ?? .open).name.utf8)
        bytes.append("\",\"assigneeId\":")
        if statement.isNull(3) {
            bytes.append("null")
        } else {
            bytes.append(identifier: EntityID(.profile, statement.int64(3)))
        }
        bytes.append(",\"due\":")
        if let due = TaskDate(stored: statement.int64(4)) {
            bytes.append(UInt8(ascii: "\""))
            bytes.append(contentsOf: due.text.utf8)
            bytes.append(UInt8(ascii: "\""))
        } else {
            bytes.append("null")
        }
        bytes.append(version: statement.int64(5), updated: WallTime(milliseconds: statement.int64(6)))
    }
}

extension TaskTable {
    /// The members of a task that are stored in its head.
    static func members(row: Int64, creator: Int64, clientID: String?, title: String, created: WallTime) -> JSONObject {
        var members = JSONObject()
        members["id"] = .string(EntityID(.task, row).text)
        members["creatorId"] = .string(EntityID(.profile, creator).text)
        members["clientId"] = clientID.map { .string($0) } ?? .null
        members["title"] = .string(title)
        members["createdAt"] = .string(created.rfc3339())
        return members
    }
}
