import LarderCoding
import LarderHTTP
import LarderSQLite
import LarderTime

/// A page of the change feed.
struct ChangePage: Sendable {
    /// The changes as JSON.
    var items: [[UInt8]]
    var next: ChangeToken
    var hasMore: Bool
}

/// Reads the change feed for one reader. Used while the store is locked.
struct ChangeReader {
    let store: Store
    let retention: Duration
    let now: WallTime
    /// The problem, with a detail and a reason, that tells the reader to begin anew.
    let resync: (String, String) -> Problem

    /// The maximum number of rows that one page scans, so that a reader who may see few of them still gets a timely reply.
    private static let rowsMaximum = 4_096
    private static let batch = 256

    /// The starting position of a reader: after a token, or at the beginning of the feed.
    ///
    /// - Throws: `resync-required` when changes after the token were forgotten, `filter-mismatch` when the token was issued for
    ///   other types.
    func start(since: ChangeToken?, filter: ChangeFilter?, viewer: Int64) throws -> ChangeToken {
        let newest = try store.entities.newestPosition()
        guard let token = since else {
            return ChangeToken(
                instance: store.instance,
                viewer: viewer,
                filter: filter ?? .all,
                position: 0,
                floor: newest
            )
        }
        try store.forgetTombstones(before: now - retention)
        guard token.instance == store.instance, token.position <= newest else {
            throw resync("The token was issued for another state.", "foreign")
        }
        guard token.viewer == viewer else {
            throw resync("The token was issued for another reader.", "foreign")
        }
        guard try store.meta.integer(.tombstoneHorizon) ?? 0 <= max(token.position, token.floor) else {
            throw resync("Tombstones after the token were removed.", "expired")
        }
        if let filter, filter != token.filter {
            throw ProblemType.filterMismatch(
                "The token was issued for other types than `types`.",
                at: "types",
                "must equal the types of the token"
            )
        }
        return token
    }

    /// A token for the current position: all changes so far count as delivered.
    func present(filter: ChangeFilter, viewer: Int64) throws -> ChangeToken {
        let newest = try store.entities.newestPosition()
        return ChangeToken(
            instance: store.instance,
            viewer: viewer,
            filter: filter,
            position: newest,
            floor: newest
        )
    }

    /// The changes after `token` that the reader may see, as JSON.
    func page(after token: ChangeToken, scope: ReaderScope, limit: Int) throws(SQLiteError) -> ChangePage {
        let found = try changes(after: token, scope: scope, limit: limit)
        var items: [[UInt8]] = []
        for row in found.rows { items.append(try ChangeJSON.encode(row, viewer: scope.viewer, from: store)) }
        return ChangePage(items: items, next: found.next, hasMore: found.hasMore)
    }

    /// The changes after `token` that the reader may see, and the token behind them. There may be more than were found, because there are
    /// more than `limit` or too many rows would have to be scanned.
    func changes(after token: ChangeToken, scope: ReaderScope, limit: Int) throws(SQLiteError) -> (
        rows: [ChangeRow], next: ChangeToken, hasMore: Bool
    ) {
        var (found, next, looked): ([ChangeRow], ChangeToken, Int) = ([], token, 0)
        while looked < Self.rowsMaximum {
            let rows = try store.entities.changes(after: next.position, limit: Self.batch)
            for row in rows {
                if isVisible(row, to: scope, under: token) {
                    guard found.count < limit else { return (found, next, true) }
                    found.append(row)
                }
                next = next.advanced(to: row.position)
            }
            looked += rows.count
            guard rows.count < Self.batch else { continue }
            // The token also covers positions that no longer exist because their entity changed again.
            return (found, next.advanced(to: max(next.position, try store.entities.newestPosition())), false)
        }
        return (found, next, true)
    }

    private func isVisible(_ row: ChangeRow, to scope: ReaderScope, under token: ChangeToken) -> Bool {
        guard token.filter.includes(row.entity.kind), scope.includes(row.entity, in: row.list) else { return false }
        // A reader of the initial state never saw the entities that were deleted before it began.
        return !(row.isDeleted && row.position <= token.floor && token.position < token.floor)
    }
}
