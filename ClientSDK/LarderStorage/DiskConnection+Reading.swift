import LarderSQLite
import LarderTime

/// A row of `items`.
struct DiskRow {
    let number: Int64
    let accessed: Int64
    let flags: Int64
    let sum: Int64
    /// With its entity tag and payload as they are stored.
    let item: DiskEntity

    /// Reads the fourteen columns of `DiskStatement.find`.
    init(_ key: EntityKey, _ statement: Statement) {
        number = statement.int64(0)
        accessed = statement.int64(6)
        flags = statement.int64(8)
        sum = statement.int64(9)
        let isTombstone = flags & DiskFlags.tombstone != 0
        var item = DiskEntity(
            key,
            payload: isTombstone ? [] : statement.bytes(13),
            version: statement.optional(1),
            entityTag: statement.optionalText(2),
            RowTimes(
                fetchedAt: WallTime(nanosecondsSinceEpoch: statement.int64(3)),
                validatedAt: WallTime(nanosecondsSinceEpoch: statement.int64(4)),
                expiresAt: WallTime(nanosecondsSinceEpoch: statement.int64(5)),
                terms: RowTimes.Terms(rawValue: flags & DiskFlags.terms)
            ),
            statement.int64(7) < DiskEntity.Completeness.complete.rawValue ? .partial : .complete
        )
        item.asked = Stamp(rawValue: statement.int64(10))
        item.invalid = Stamp(rawValue: statement.int64(11))
        item.changed = Stamp(rawValue: statement.int64(12))
        self.item = item
    }

    var isTombstone: Bool { flags & DiskFlags.tombstone != 0 }

    /// Whether it has the checksum, given that of its content.
    func isSound(_ content: UInt64) -> Bool { sum == Int64(bitPattern: content ^ item.timesSum) }
}

extension DiskEntity {
    /// The part of its checksum that depends on times.
    var timesSum: UInt64 {
        DiskChecksum.times(
            version: version,
            fetched: times.fetchedAt.nanosecondsSinceEpoch,
            validated: times.validatedAt.nanosecondsSinceEpoch,
            expires: times.expiresAt.nanosecondsSinceEpoch
        )
    }
}

extension DiskConnection {
    // MARK: Items

    /// An entity, however stale; nil if there is none or it is damaged, which is reported and the entity removed.
    package func entity(_ key: EntityKey) throws(DiskError) -> DiskEntity? { try item(.entity, key) }

    /// A list of identifiers. Requires a transaction, so that all of it is of one snapshot.
    package func query(_ key: QueryKey) throws(DiskError) -> DiskQuery? { try queryRow(key)?.query }

    /// A list and its entities. Requires a transaction. Cost: two statements.
    package func list(_ key: QueryKey) throws(DiskError) -> DiskStore.List? {
        guard let (query, row) = try queryRow(key) else { return nil }
        let ids = query.ids
        var next = ids.makeIterator()
        let entities = try all(.findListed, row) { statement -> DiskEntity?? in
            guard let key = next.next(), !statement.isNull(0) else { return .some(nil) }
            let row = DiskRow(key, statement)
            return row.isTombstone ? .some(nil) : try item(.entity, row)
        }
        guard entities.count == ids.count else { throw damaged("a list has changed within a transaction") }
        return DiskStore.List(query: query, entities: entities)
    }

    private func queryRow(_ key: QueryKey) throws(DiskError) -> (query: DiskQuery, row: Int64)? {
        guard let row = try find(.query, StoredKey.query(key).item) else { return nil }
        let rows = try members(of: row.number)
        guard let item = try item(.query, row, members: ListRow.sum(of: rows)) else { return nil }
        var query = DiskQuery(
            key,
            ListMembers(entries: rows.map(\.entry)),
            isComplete: item.completeness == .complete,
            entityTag: item.entityTag,
            times: item.times
        )
        (query.asked, query.invalid, query.answered) = (item.asked, item.invalid, item.changed)
        query.stored = DiskQuery.KnownRows(sum: row.sum, rows: rows)
        guard query.decode(item.payload) else {
            context.noteDamage(row, item: "\(key)", cause: "edits")
            return nil
        }
        return (query, row.number)
    }

    func members(of row: Int64) throws(DiskError) -> [ListRow] {
        try all(.findMembers, row) { statement in
            let key = EntityKey(type: statement.text(1), id: statement.text(2))
            let entry = context.seal.member(key, mark: statement.optional(3), note: statement.optionalText(4))
            return ListRow(statement.int64(0), entry)
        }
    }

    /// Removes an entity with a damaged row; false if it is sound or missing.
    func removeIfDamaged(_ kind: DiskKind, _ key: EntityKey) throws(DiskError) -> Bool {
        let known = try first(.find, kind, key.type, key.id) { (row: $0.int64(0), sum: $0.int64(9)) }
        guard kind == .entity, let known else { return false }
        _ = try item(kind, key)
        guard context.isDamaged(known.row, sum: known.sum) else { return false }
        try run(.removeRow, known.row, known.sum)
        return true
    }

    /// The number and the checksum of an item's row.
    func row(of key: StoredKey) throws(DiskError) -> (number: Int64, sum: Int64)? {
        try first(.findTimes, key.kind, key.item.type, key.item.id) { ($0.int64(0), $0.int64(5)) }
    }

    /// A row that is no tombstone. A damaged tombstone is noted for removal.
    private func find(_ kind: DiskKind, _ key: EntityKey) throws(DiskError) -> DiskRow? {
        let found = try first(.find, kind, key.type, key.id) { DiskRow(key, $0) }
        guard let row = found, row.isTombstone else { return found }
        if kind != .entity || !row.isSound(context.checksum.tombstone(key.type, key.id)) {
            context.noteDamage(row, item: "\(key)")
        }
        return nil
    }

    private func item(_ kind: DiskKind, _ key: EntityKey) throws(DiskError) -> DiskEntity? {
        guard let row = try find(kind, key) else { return nil }
        return try item(kind, row)
    }

    /// The item of a row; nil if it is damaged, which is noted for removal, and while the key of the payload transform is away.
    private func item(_ kind: DiskKind, _ row: DiskRow, members: UInt64 = 0) throws(DiskError) -> DiskEntity? {
        var item = row.item
        let key = item.key
        func damaged(_ cause: String? = nil) throws(DiskError) -> DiskEntity? {
            guard try hasKey() else { return nil }
            let query = kind == .query ? QueryKey(name: key.type, canonicalParameters: key.id) : nil
            context.noteDamage(row, item: query.map { "\($0)" } ?? "\(key)", cause: cause)
            return nil
        }
        let content = context.checksum.content(kind, key.type, key.id, item.entityTag, item.payload) ^ members
        guard row.isSound(content) else { return try damaged() }
        context.noteAccess(row.number, stamped: row.accessed)
        item.entityTag = context.seal.open(text: item.entityTag, DiskSeal.tagPlace(kind, key.type, key.id))
        do {
            item.payload = try context.seal.open(item.payload, DiskChecksum.place(kind.rawValue, key.type, key.id))
        } catch {
            return try damaged("\(error)")
        }
        return item
    }

    // MARK: The order of changes

    /// The place of an entity or its deletion, or of a list, in the order of changes; nil if there is no row. Cost: less than reading it.
    package func place(of key: StoredKey) throws(DiskError) -> DiskStore.Place? {
        let item = key.item
        return try first(.describe, key.kind, item.type, item.id) { row in
            DiskStore.Place(
                asked: Stamp(rawValue: row.int64(3)),
                invalid: Stamp(rawValue: row.int64(4)),
                version: row.optional(0),
                isRemoval: row.int64(1) & DiskFlags.tombstone != 0
            )
        }
    }

    /// The largest stamp of an item; nil without items. Cost: reads all items.
    package func latestStamp() throws(DiskError) -> Stamp? {
        try first(.latestStamp) { $0.optional(0).map(Stamp.init) } ?? nil
    }

    /// The entities of a type whose values were stored after a stamp.
    ///
    /// - Parameter answered: the stamp of a commit that does not count.
    package func changes(
        ofType type: String,
        since stamp: Stamp,
        except answered: Stamp
    ) throws(DiskError) -> DiskStore.Changes {
        let ids = try all(.changedSince, type, stamp, answered) { $0.text(0) }
        let lost = try first(.findLost, type) { $0.int64(0) } ?? 0
        return DiskStore.Changes(ids: ids, areLost: lost > stamp.rawValue)
    }

    // MARK: Keys

    /// The keys of all lists of a query, sorted.
    package func queryKeys(named name: String) throws(DiskError) -> [QueryKey] {
        try all(.queryKeys, name) { queryKey($0) }
    }

    /// The types of all entities, sorted. O(n) in all items.
    package func entityTypes() throws(DiskError) -> [String] { try all(.spaces, "0") { $0.text(0) } }

    /// The names of all lists, sorted. O(n) in all items.
    package func queryNames() throws(DiskError) -> [String] { try all(.spaces, "1") { $0.text(0) } }

    /// The identifiers of all entities of a type, sorted.
    ///
    /// - Parameter hasDeletions: whether those of deletions count.
    package func entityIDs(ofType type: String, withDeletions hasDeletions: Bool = false) throws(DiskError) -> [String]
    {
        try all(.entityIDs, type, Int64(hasDeletions ? 1 : 0)) { $0.text(0) }
    }

    /// The keys of all lists that contain an entity, sorted.
    package func queries(with key: EntityKey) throws(DiskError) -> [QueryKey] {
        try all(.queriesWith, key.type, key.id) { queryKey($0) }
    }

    private func queryKey(_ row: Statement) -> QueryKey? {
        QueryKey(name: row.text(0), canonicalParameters: row.text(1))
    }

    // MARK: The outbox

    /// Operations of the outbox in order, after a sequence number.
    package func outbox(after sequence: Int64 = 0, limit: Int = 100) throws(DiskError) -> [DiskOutboxRow] {
        try all(.outboxList, sequence, Int64(limit)) { statement in
            guard let row = DiskOutboxRow(statement, context.seal) else {
                throw SQLiteError(code: .corrupt, message: "an operation of the outbox is damaged")
            }
            return row
        }
    }

    func totals() throws(DiskError) -> (bytes: Int64, items: Int64) {
        guard let totals = try first(.totals, read: { ($0.int64(0), $0.int64(1)) }) else {
            throw damaged("the totals are missing")
        }
        return totals
    }
}

extension DiskStore {
    /// The place of an item in the order of changes.
    package struct Place: Sendable {
        package var asked: Stamp
        package var invalid: Stamp
        package var version: Int64?
        /// Whether it is a deletion.
        package var isRemoval: Bool

        package init(asked: Stamp, invalid: Stamp = .never, version: Int64? = nil, isRemoval: Bool = false) {
            (self.asked, self.invalid, self.version, self.isRemoval) = (asked, invalid, version, isRemoval)
        }

        /// Whether what is here is newer than what was asked for at a time: versions decide where both have one.
        package func overtakes(_ asked: Stamp, version: Int64?) -> Bool {
            guard asked < self.asked else { return false }
            if let version, let known = self.version { return version <= known }
            return true
        }
    }

    /// The entities of a type that have changed since a time.
    package struct Changes: Sendable {
        /// Their identifiers, sorted.
        package var ids: [String]
        /// Whether others have changed that are no longer stored.
        package var areLost: Bool
    }
}
