import LarderSQLite

/// The sorted and filtered lists of tasks. Confined like its database.
struct TaskTable {
    let sql: SQL

    /// The places next to a place, in the order of the list, and whether there are more in that direction.
    ///
    /// - Parameters:
    ///   - place: nil for the beginning of the list, or for its end if the page goes backwards.
    ///   - isBackward: whether the tasks before the place are wanted.
    func page(
        _ query: TaskQuery,
        from place: TaskPlace?,
        isBackward: Bool,
        limit: Int
    ) throws(SQLiteError) -> (places: [TaskPlace], hasMore: Bool) {
        let isAscending = query.order.isAscending != isBackward
        let comparison: SQLText = isAscending ? ">" : "<"
        let direction: SQLText = isAscending ? "ASC" : "DESC"
        let start: SQLText = query.order.isByDue ? "(due, id) \(comparison) (?1, ?2)" : "id \(comparison) ?2"
        let order: SQLText = query.order.isByDue ? "due \(direction), id" : "id"
        let assignee: SQLText = query.assignee == .anyone ? "" : "AND assignee IS ?4"
        let edge: Int64 = isAscending ? .min : .max
        var person: String?
        if case .person(let row) = query.assignee { person = EntityID(.profile, row).text }
        let found = try sql.all(
            """
            SELECT id, due FROM \(WorldSchema.tasks) WHERE \(start) AND (?3 >> status) & 1 \(assignee) AND due BETWEEN ?5 AND ?6
            ORDER BY \(order) \(direction) LIMIT ?7
            """,
            [
                place?.key ?? (query.order.isByDue ? edge : 0), place?.row ?? edge, query.statuses, person,
                query.due.lowerBound, query.due.upperBound, limit + 1,
            ]
        ) { TaskPlace(key: query.order.isByDue ? $0.int64(1) : 0, row: $0.int64(0)) }
        let places = Array(found.prefix(limit))
        return (isBackward ? places.reversed() : places, found.count > limit)
    }
}
