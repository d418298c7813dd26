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
    let source: Int64
    let flags: Int64
    let sum: Int64
    let blob: String?
    let asked: Stamp
    let invalid: Stamp
    let changed: Stamp

    /// Reads the first fifteen columns in the order of `DiskStatement.find`.
    init(_ statement: Statement) {
        row = statement.int64(0)
        version = statement.isNull(1) ? nil : statement.int64(1)
        entityTag = statement.isNull(2) ? nil : statement.text(2)
        fetched = statement.int64(3)
        validated = statement.int64(4)
        expires = statement.int64(5)
        accessed = statement.int64(6)
        completeness = statement.int64(7)
        source = statement.int64(8)
        flags = statement.int64(9)
        sum = statement.int64(10)
        blob = statement.isNull(11) ? nil : statement.text(11)
        asked = Stamp(rawValue: statement.int64(12))
        invalid = Stamp(rawValue: statement.int64(13))
        changed = Stamp(rawValue: statement.int64(14))
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

    func entities(
        ofType type: String,
        after last: String?,
        limit: Int,
        where isRead: (EntityKey) -> Bool
    ) throws(SQLiteError) -> [(id: String, entity: DiskEntity?)] {
        let statement = try prepared(.entitiesAfter)
        defer { statement.reset() }
        try statement.bind(type, at: 1)
        try statement.bind(last ?? "", at: 2)
        try statement.bind(Int64(limit), at: 3)
        var found: [(id: String, entity: DiskEntity?)] = []
        while try statement.step() {
            let key = EntityKey(type: type, id: statement.text(16))
            guard isRead(key) else {
                found.append((key.id, nil))
                continue
            }
            let row = DiskRow(statement)
            found.append((key.id, entity(key, row, row.blob == nil ? statement.bytes(15) : [])))
        }
        return found
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
        let statement = try prepared(.findListed)
        defer { statement.reset() }
        try statement.bind(row, at: 1)
        var entities: [DiskEntity?] = []
        let ids = query.ids
        entities.reserveCapacity(ids.count)
        while try statement.step() {
            guard entities.count < ids.count, !statement.isNull(0) else {
                entities.append(nil)
                continue
            }
            let row = DiskRow(statement)
            entities.append(entity(ids[entities.count], row, row.blob == nil ? statement.bytes(15) : []))
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
        guard let payload = payload(row, body, .query, key.name, canonical, members: members.sum, item: "\(key)")
        else { return nil }
        query.members = members
        query.stored = DiskQuery.KnownRows(DiskQuery.Rows(sum: row.sum, members: members))
        guard query.decode(payload) else {
            let reason = DiskContext.Damage.Reason.undecodable("cursors")
            context.noteDamage(row.row, DiskContext.Damage(sum: row.sum, item: "\(key)", reason: reason))
            return nil
        }
        return (query, row.row)
    }

    func members(of row: Int64) throws(SQLiteError) -> ListMembers {
        let statement = try prepared(.findMembers)
        defer { statement.reset() }
        try statement.bind(row, at: 1)
        var slots: [ListMembers.Slot] = []
        while try statement.step() {
            let key = EntityKey(type: statement.text(1), id: statement.text(2))
            let mark = statement.isNull(3) ? nil : statement.int64(3)
            let note = statement.isNull(4) ? nil : statement.text(4)
            slots.append(.init(statement.int64(0), context.seal.member(key, mark: mark, note: note)))
        }
        return ListMembers(slots: slots)
    }

    private func find(_ kind: DiskKind, _ space: String, _ key: String) throws(SQLiteError) -> (DiskRow, [UInt8])? {
        let statement = try prepared(.find)
        try statement.bind(kind.rawValue, at: 1)
        var found: (row: DiskRow, body: [UInt8])?
        let isFound = try statement.first(space, at: 2, key, at: 3) {
            let row = DiskRow(statement)
            found = (row, row.isTombstone || row.blob != nil ? [] : statement.bytes(15))
        }
        guard isFound, let row = found?.row, row.isTombstone else { return found }
        if !isWhole(row, tombstoneOf: EntityKey(type: space, id: key), kind) {
            note(row, "\(EntityKey(type: space, id: key))", .checksum)
        }
        return nil
    }

    private func isWhole(_ row: DiskRow, tombstoneOf key: EntityKey, _ kind: DiskKind) -> Bool {
        kind == .entity && row.sum(of: context.checksum.tombstone(key.type, key.id)) == row.sum
    }

    /// Removes an entity with a damaged row; false if it is sound or missing.
    func removeIfDamaged(_ kind: DiskKind, _ space: String, _ key: String) throws(SQLiteError) -> Bool {
        guard kind == .entity, let known = try sum(kind, space, key, includesTombstones: true) else { return false }
        let entity = EntityKey(type: space, id: key)
        if let (row, body) = try find(kind, space, key) { _ = self.entity(entity, row, body) }
        guard context.isDamaged(known.row, sum: known.sum) else { return false }
        try run(.removeRow, [], numbers: [known.row, known.sum])
        return true
    }

    /// The number and the checksum of an item's row.
    func sum(
        _ kind: DiskKind,
        _ space: String,
        _ key: String,
        includesTombstones: Bool = false
    ) throws(SQLiteError) -> (row: Int64, sum: Int64)? {
        let statement = try prepared(includesTombstones ? .find : .findTimes)
        defer { statement.reset() }
        try statement.bind(kind.rawValue, at: 1)
        try statement.bind(space, at: 2)
        try statement.bind(key, at: 3)
        return try statement.step() ? (statement.int64(0), statement.int64(includesTombstones ? 10 : 5)) : nil
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
            completeness: DiskEntity.Completeness(rawValue: Int(row.completeness)),
            source: DiskEntity.Source(rawValue: Int(row.source))
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
        var stored = body
        if let name = row.blob {
            guard let bytes = context.blobs.read(name) else {
                hasMissedFile = true
                // After the simulated death every read fails, which does not mean that the file is missing.
                if !(context.files.faults?.isDead ?? false) { note(row, item(), .fileMissing) }
                return nil
            }
            stored = bytes
        }
        let content = context.checksum.content(kind, space, key, row.entityTag, stored) ^ members
        guard row.sum(of: content) == row.sum else {
            note(row, item(), .checksum)
            return nil
        }
        context.noteAccess(row.row, stamped: row.accessed)
        do {
            return try context.seal.open(stored, DiskChecksum.place(kind.rawValue, space, key))
        } catch {
            note(row, item(), .undecodable("\(error)"))
            return nil
        }
    }

    private func note(_ row: DiskRow, _ item: String, _ reason: DiskContext.Damage.Reason) {
        context.noteDamage(row.row, DiskContext.Damage(sum: row.sum, item: item, reason: reason))
    }

    // MARK: Changes

    func changes(ofType type: String, since stamp: Stamp, except answered: Stamp) throws(SQLiteError)
        -> DiskStore.Changes
    {
        let statement = try prepared(.changedSince)
        defer { statement.reset() }
        try statement.bind(type, at: 1)
        try statement.bind(stamp.rawValue, at: 2)
        try statement.bind(answered.rawValue, at: 3)
        var ids: [String] = []
        while try statement.step() { ids.append(statement.text(0)) }
        let lost = try prepared(.findLost)
        defer { lost.reset() }
        try lost.bind(type, at: 1)
        return DiskStore.Changes(ids: ids, areLost: try lost.step() && lost.int64(0) > stamp.rawValue)
    }

    // MARK: Lookups of lists

    /// The single column of a statement with one parameter.
    func texts(_ name: DiskStatement, _ parameter: String) throws(SQLiteError) -> [String] {
        let statement = try prepared(name)
        defer { statement.reset() }
        try statement.bind(parameter, at: 1)
        var texts: [String] = []
        while try statement.step() { texts.append(statement.text(0)) }
        return texts
    }

    /// The keys of entities and lists, and of deletions; nil: of all types.
    func keys(ofType type: String?) throws(SQLiteError) -> [DiskStore.Key] {
        let statement = try prepared(.keys)
        defer { statement.reset() }
        try statement.bind(type, at: 1)
        var keys: [DiskStore.Key] = []
        while try statement.step() {
            let (space, key) = (statement.text(1), statement.text(2))
            if statement.int64(0) == DiskKind.query.rawValue {
                if let key = QueryKey(name: space, canonicalParameters: key) { keys.append(.query(key)) }
                continue
            }
            let deletion = DiskStore.Place(
                asked: Stamp(rawValue: statement.int64(5)),
                version: statement.isNull(4) ? nil : statement.int64(4),
                isRemoval: true
            )
            keys.append(.entity(EntityKey(type: space, id: key), deletion: statement.int64(3) == 0 ? nil : deletion))
        }
        return keys
    }

    func queryKeys(named name: String) throws(SQLiteError) -> [QueryKey] {
        let statement = try prepared(.queryKeys)
        defer { statement.reset() }
        try statement.bind(name, at: 1)
        return try keys(statement)
    }

    func queries(with key: EntityKey) throws(SQLiteError) -> [QueryKey] {
        let statement = try prepared(.queriesWith)
        defer { statement.reset() }
        try statement.bind(key.type, at: 1)
        try statement.bind(key.id, at: 2)
        return try keys(statement)
    }

    private func keys(_ statement: Statement) throws(SQLiteError) -> [QueryKey] {
        var keys: [QueryKey] = []
        while try statement.step() {
            if let key = QueryKey(name: statement.text(0), canonicalParameters: statement.text(1)) { keys.append(key) }
        }
        return keys
    }

    // MARK: The outbox

    func outbox(after sequence: Int64, limit: Int) throws(SQLiteError) -> [DiskOutboxRow] {
        let statement = try prepared(.outboxList)
        defer { statement.reset() }
        try statement.bind(sequence, at: 1)
        try statement.bind(Int64(limit), at: 2)
        var rows: [DiskOutboxRow] = []
        while try statement.step() {
            guard let row = DiskOutboxRow(statement, context.seal) else {
                throw SQLiteError(code: .corrupt, message: "an operation of the outbox is damaged")
            }
            rows.append(row)
        }
        return rows
    }

    func totals() throws(SQLiteError) -> (bytes: Int64, items: Int64) {
        let statement = try prepared(.totals)
        defer { statement.reset() }
        guard try statement.step() else { throw SQLiteError(code: .corrupt, message: "the totals are missing") }
        return (statement.int64(0), statement.int64(1))
    }
}
