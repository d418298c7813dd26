import LarderSQLite
import LarderTime

extension DiskConnection {
    /// Stores a list, and only the members that differ from the stored ones.
    ///
    /// - Returns: the list with the positions of its rows.
    func put(_ query: DiskQuery) throws -> DiskQuery {
        let known = try rows(of: query)
        var query = query
        if known == nil || query.stored.rows?.sum != known?.sum {
            // Its positions are not those of the rows.
            var members = known?.members ?? ListMembers()
            members.replace(with: Array(query.members.entries))
            query.members = members
        }
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
            members: query.members
        )
        _ = try put(item)
        guard let row = try sum(.query, item.space, item.key) else {
            throw SQLiteError(code: .corrupt, message: "a list that was just stored is missing")
        }
        try put(query.members.difference(from: known?.members ?? ListMembers()), of: row.row)
        query.stored = DiskQuery.KnownRows(DiskQuery.Rows(sum: row.sum, members: query.members))
        return query
    }

    /// The stored members of a list, which are read only if the caller does not know them; nil if it is not stored.
    private func rows(of query: DiskQuery) throws(SQLiteError) -> DiskQuery.Rows? {
        guard let row = try sum(.query, query.key.name, query.key.canonicalParameters) else { return nil }
        if let known = query.stored.rows, known.sum == row.sum { return known }
        return DiskQuery.Rows(sum: row.sum, members: try members(of: row.row))
    }

    func put(_ difference: ListMembers.Difference, of row: Int64) throws {
        for position in difference.removed { try run(.dropMember, [], numbers: [row, position]) }
        let statement = try prepared(.putMember)
        for slot in difference.stored {
            try checkKey(slot.entry.key.type, slot.entry.key.id)
            try statement.bind(row, at: 1)
            try statement.bind(slot.position, at: 2)
            try statement.bind(slot.entry.key.type, at: 3)
            let (id, note) = try context.seal.close(slot.entry)
            try statement.bind(id, at: 4)
            try statement.bind(slot.entry.mark, at: 5)
            try statement.bind(note, at: 6)
            try statement.run()
        }
    }
}
