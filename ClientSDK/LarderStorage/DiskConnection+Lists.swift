import LarderSQLite
import LarderTime

extension DiskConnection {
    /// Stores a list, replacing the one under its key. Only the members that differ are written.
    ///
    /// - Returns: the list with the positions of its rows, by which the next call finds the difference without reading them.
    @discardableResult package func put(_ query: DiskQuery) throws(DiskError) -> DiskQuery {
        let known = try rows(of: query)
        let rows = ListRow.rows(of: query.members.entries, after: known)
        var item = DiskEntity(
            StoredKey.query(query.key).item,
            payload: query.encoded,
            entityTag: query.entityTag,
            query.times,
            query.isComplete ? .complete : .partial
        )
        (item.asked, item.invalid, item.changed) = (query.asked, query.invalid, query.answered)
        _ = try put(item, as: .query, members: rows)
        guard let row = try row(of: .query(query.key)) else {
            throw damaged("a list that was just stored is missing")
        }
        let difference = ListRow.difference(from: known, to: rows)
        for position in difference.removed { try run(.dropMember, row.number, position) }
        for member in difference.stored { try put(member, of: row.number) }
        var query = query
        query.stored = DiskQuery.KnownRows(sum: row.sum, rows: rows)
        return query
    }

    /// The stored members of a list, which are read only if the caller does not know them.
    private func rows(of query: DiskQuery) throws(DiskError) -> [ListRow] {
        guard let row = try row(of: .query(query.key)) else { return [] }
        if let known = query.stored.rows, query.stored.sum == row.sum { return known }
        return try members(of: row.number)
    }

    private func put(_ member: ListRow, of row: Int64) throws(DiskError) {
        let key = member.entry.key
        try checkKey(key.type, key.id)
        let (id, note) = try context.seal.close(member.entry)
        try run(.putMember, row, member.position, key.type, id, member.entry.mark, note)
    }

    /// Renews a list's times and stamp to those of the value.
    package func touch(_ query: inout DiskQuery) throws(DiskError) {
        let sums = try touch(.query(query.key), query.times, asked: query.asked)
        if let sums, query.stored.sum == sums.old { query.stored.sum = sums.new }
    }
}
