import LarderSQLite
import LarderTime

extension DiskConnection {
    /// Stores a list, and only the members that differ from the stored ones.
    ///
    /// - Returns: the list with the positions of its rows.
    func put(_ query: DiskQuery) throws -> DiskQuery {
        let known = try rows(of: query)
        let rows = ListRow.rows(of: query.members.entries, after: known)
        let expires = query.expiresAt.nanosecondsSinceEpoch
        let item = NewItem(
            kind: .query,
            space: query.key.name,
            key: query.key.canonicalParameters,
            entityTag: query.entityTag,
            fetched: query.fetchedAt.nanosecondsSinceEpoch,
            validated: query.validatedAt.nanosecondsSinceEpoch,
            expires: expires,
            removeAt: removal(expires),
            completeness: query.isComplete ? Int64(DiskEntity.Completeness.complete.rawValue) : 0,
            flags: DiskFlags.of(query.terms, isClockUncertain: query.isClockUncertain),
            asked: query.asked,
            invalid: query.invalid,
            changed: query.answered,
            payload: query.encoded,
            members: rows
        )
        _ = try put(item)
        guard let row = try sum(.query, item.space, item.key) else {
            throw SQLiteError(code: .corrupt, message: "a list that was just stored is missing")
        }
        let difference = ListRow.difference(from: known, to: rows)
        for position in difference.removed { try run(.dropMember, row.row, position) }
        for member in difference.stored { try put(member, of: row.row) }
        var query = query
        query.stored = DiskQuery.KnownRows(DiskQuery.Rows(sum: row.sum, rows: rows))
        return query
    }

    /// The stored members of a list, which are read only if the caller does not know them.
    private func rows(of query: DiskQuery) throws(SQLiteError) -> [ListRow] {
        guard let row = try sum(.query, query.key.name, query.key.canonicalParameters) else { return [] }
        if let known = query.stored.rows, known.sum == row.sum { return known.rows }
        return try members(of: row.row)
    }

    private func put(_ member: ListRow, of row: Int64) throws {
        let key = member.entry.key
        try checkKey(key.type, key.id)
        let (id, note) = try context.seal.close(member.entry)
        try run(.putMember, row, member.position, key.type, id, member.entry.mark, note)
    }
}
