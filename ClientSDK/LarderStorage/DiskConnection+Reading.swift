import LarderSQLite
import LarderTime

/// A row of `items` without the payload.
struct DiskRow {
    let row: Int64
    let version: Int64?
    /// As it is stored.
    let entityTag: String?
    let fetched: Int64
    let validated: Int64
    let expires: Int64
    let accessed: Int64
    let completeness: Int64
    let flags: Int64
    let sum: Int64
    let asked: Stamp
    let invalid: Stamp
    let changed: Stamp

    /// Reads the first thirteen columns of `DiskStatement.find`.
    init(_ statement: Statement) {
        row = statement.int64(0)
        version = statement.optional(1)
        entityTag = statement.optionalText(2)
        fetched = statement.int64(3)
        validated = statement.int64(4)
        expires = statement.int64(5)
        accessed = statement.int64(6)
        completeness = statement.int64(7)
        flags = statement.int64(8)
        sum = statement.int64(9)
        asked = Stamp(rawValue: statement.int64(10))
        invalid = Stamp(rawValue: statement.int64(11))
        changed = Stamp(rawValue: statement.int64(12))
    }

    var isTombstone: Bool { flags & DiskFlags.tombstone != 0 }

    var terms: DiskEntity.Terms { DiskEntity.Terms(rawValue: flags & DiskFlags.terms) }

    /// The expected checksum of the row, given that of its content.
    func sum(of content: UInt64) -> Int64 {
        let times = DiskChecksum.times(version: version, fetched: fetched, validated: validated, expires: expires)
        return Int64(bitPattern: content ^ times)
    }
}

extension DiskConnection {
    // MARK: Items

    func entity(_ key: EntityKey) throws(SQLiteError) -> DiskEntity? {
        guard let (row, body) = try find(.entity, key.type, key.id) else { return nil }
        return entity(key, row, body)
    }

    func record(_ key: String) throws(SQLiteError) -> DiskRecord? {
        guard let (row, body) = try find(.record, "", key),
            let payload = payload(row, body, .record, "", key, item: key)
        else { return nil }
        return DiskRecord(
            key,
            payload: payload,
            recordedAt: WallTime(nanosecondsSinceEpoch: row.fetched),
            expiresAt: WallTime(nanosecondsSinceEpoch: row.expires)
        )
    }

    func query(_ key: QueryKey) throws(SQLiteError) -> DiskQuery? { try queryRow(key)?.query }

    /// A list and its entities. Requires a transaction, so that both are of one snapshot.
    func list(_ key: QueryKey) throws(SQLiteError) -> DiskStore.List? {
        guard let (query, row) = try queryRow(key) else { return nil }
        let ids = query.ids
        var next = ids.makeIterator()
        let entities = try all(.findListed, row) { statement -> DiskEntity?? in
            guard let key = next.next(), !statement.isNull(0) else { return .some(nil) }
            return entity(key, DiskRow(statement), statement.bytes(13))
        }
        guard entities.count == ids.count else {
            throw SQLiteError(code: .corrupt, message: "a list has changed within a transaction")
        }
        return DiskStore.List(query: query, entities: entities)
    }

    private func queryRow(_ key: QueryKey) throws(SQLiteError) -> (query: DiskQuery, row: Int64)? {
        let canonical = key.canonicalParameters
        guard let (row, body) = try find(.query, key.name, canonical) else { return nil }
        let members = try members(of: row.row)
        var query = DiskQuery(
            key,
            ids: [],
            isComplete: row.completeness == Int64(DiskEntity.Completeness.complete.rawValue),
            entityTag: context.seal.open(text: row.entityTag, DiskSeal.tagPlace(.query, key.name, canonical)),
            fetchedAt: WallTime(nanosecondsSinceEpoch: row.fetched),
            validatedAt: WallTime(nanosecondsSinceEpoch: row.validated),
            expiresAt: WallTime(nanosecondsSinceEpoch: row.expires),
            terms: row.terms
        )
        (query.asked, query.invalid, query.answered) = (row.asked, row.invalid, row.changed)
        query.isClockUncertain = row.flags & DiskFlags.clockUncertain != 0
        guard
            let payload = payload(
                row,
                body,
                .query,
                key.name,
                canonical,
                members: ListRow.sum(of: members),
                item: "\(key)"
            )
        else { return nil }
        query.members = ListMembers(entries: members.map(\.entry))
        query.stored = DiskQuery.KnownRows(DiskQuery.Rows(sum: row.sum, rows: members))
        guard query.decode(payload) else {
            context.noteDamage(row, item: "\(key)", cause: "cursors")
            return nil
        }
        return (query, row.row)
    }

    func members(of row: Int64) throws(SQLiteError) -> [ListRow] {
        try all(.findMembers, row) { statement in
            let key = EntityKey(type: statement.text(1), id: statement.text(2))
            let entry = context.seal.member(key, mark: statement.optional(3), note: statement.optionalText(4))
            return ListRow(statement.int64(0), entry)
        }
    }

    private func find(_ kind: DiskKind, _ space: String, _ key: String) throws(SQLiteError) -> (DiskRow, [UInt8])? {
        let found = try first(.find, kind, space, key) { statement in
            let row = DiskRow(statement)
            return (row, row.isTombstone ? [] : statement.bytes(13))
        }
        guard let row = found?.0, row.isTombstone else { return found }
        if kind != .entity || row.sum(of: context.checksum.tombstone(space, key)) != row.sum {
            context.noteDamage(row, item: "\(EntityKey(type: space, id: key))")
        }
        return nil
    }

    /// Removes an entity with a damaged row; false if it is sound or missing.
    func removeIfDamaged(_ kind: DiskKind, _ space: String, _ key: String) throws(SQLiteError) -> Bool {
        guard kind == .entity, let known = try sum(kind, space, key, includesTombstones: true) else { return false }
        let entity = EntityKey(type: space, id: key)
        if let (row, body) = try find(kind, space, key) { _ = self.entity(entity, row, body) }
        guard context.isDamaged(known.row, sum: known.sum) else { return false }
        try run(.removeRow, known.row, known.sum)
        return true
    }

    /// The number and the checksum of an item's row.
    func sum(
        _ kind: DiskKind,
        _ space: String,
        _ key: String,
        includesTombstones: Bool = false
    ) throws(SQLiteError) -> (row: Int64, sum: Int64)? {
        try first(includesTombstones ? .find : .findTimes, kind, space, key) {
            ($0.int64(0), $0.int64(includesTombstones ? 9 : 5))
        }
    }

    func entity(_ key: EntityKey, _ row: DiskRow, _ body: [UInt8]) -> DiskEntity? {
        guard !row.isTombstone, let payload = payload(row, body, .entity, key.type, key.id, item: "\(key)") else {
            return nil
        }
        var entity = DiskEntity(
            key,
            payload: payload,
            version: row.version,
            entityTag: context.seal.open(text: row.entityTag, DiskSeal.tagPlace(.entity, key.type, key.id)),
            fetchedAt: WallTime(nanosecondsSinceEpoch: row.fetched),
            validatedAt: WallTime(nanosecondsSinceEpoch: row.validated),
            expiresAt: WallTime(nanosecondsSinceEpoch: row.expires),
            terms: row.terms,
            completeness: DiskEntity.Completeness(rawValue: Int(row.completeness))
        )
        (entity.asked, entity.invalid, entity.changed) = (row.asked, row.invalid, row.changed)
        entity.isClockUncertain = row.flags & DiskFlags.clockUncertain != 0
        return entity
    }

    /// The payload of a row; nil if it is damaged. The damage is noted for removal.
    private func payload(
        _ row: DiskRow,
        _ body: [UInt8],
        _ kind: DiskKind,
        _ space: String,
        _ key: String,
        members: UInt64 = 0,
        item: @autoclosure () -> String
    ) -> [UInt8]? {
        let content = context.checksum.content(kind, space, key, row.entityTag, body) ^ members
        guard row.sum(of: content) == row.sum else {
            context.noteDamage(row, item: item())
            return nil
        }
        context.noteAccess(row.row, stamped: row.accessed)
        do {
            return try context.seal.open(body, DiskChecksum.place(kind.rawValue, space, key))
        } catch {
            context.noteDamage(row, item: item(), cause: "\(error)")
            return nil
        }
    }

    // MARK: Changes

    func changes(ofType type: String, since stamp: Stamp, except answered: Stamp) throws(SQLiteError)
        -> DiskStore.Changes
    {
        let ids = try all(.changedSince, type, stamp, answered) { $0.text(0) }
        let lost = try first(.findLost, type) { $0.int64(0) } ?? 0
        return DiskStore.Changes(ids: ids, areLost: lost > stamp.rawValue)
    }

    // MARK: Lookups of lists

    /// The keys of entities and lists, and of deletions; nil: of all types.
    func keys(ofType type: String?) throws(SQLiteError) -> [DiskStore.Key] {
        try all(.keys, type) { statement in
            let (space, key) = (statement.text(1), statement.text(2))
            if statement.int64(0) == DiskKind.query.rawValue {
                return QueryKey(name: space, canonicalParameters: key).map { .query($0) }
            }
            let deletion = DiskStore.Place(
                asked: Stamp(rawValue: statement.int64(5)),
                version: statement.optional(4),
                isRemoval: true
            )
            return .entity(EntityKey(type: space, id: key), deletion: statement.int64(3) == 0 ? nil : deletion)
        }
    }

    /// The keys of lists that a statement with two columns finds.
    func queryKey(_ row: Statement) -> QueryKey? { QueryKey(name: row.text(0), canonicalParameters: row.text(1)) }

    // MARK: The outbox

    func outbox(after sequence: Int64, limit: Int) throws(SQLiteError) -> [DiskOutboxRow] {
        try all(.outboxList, sequence, Int64(limit)) { statement throws(SQLiteError) in
            guard let row = DiskOutboxRow(statement, context.seal) else {
                throw SQLiteError(code: .corrupt, message: "an operation of the outbox is damaged")
            }
            return row
        }
    }

    func totals() throws(SQLiteError) -> (bytes: Int64, items: Int64) {
        guard let totals = try first(.totals, read: { ($0.int64(0), $0.int64(1)) }) else {
            throw SQLiteError(code: .corrupt, message: "the totals are missing")
        }
        return totals
    }
}
