import LarderSQLite
import LarderTime

/// A row of `items` that is to be stored.
struct NewItem {
    let kind: DiskKind
    let space: String
    let key: String
    var version: Int64?
    var entityTag: String?
    let fetched: Int64
    let validated: Int64
    let expires: Int64
    /// When maintenance removes it, in nanoseconds since the epoch.
    let removeAt: Int64
    var completeness: Int64 = 0
    var flags: Int64 = 0
    var asked = Stamp.never
    var invalid = Stamp.never
    var changed = Stamp.never
    let payload: [UInt8]
    var fields: [DiskField] = []
    var members: [ListRow] = []
}

extension DiskConnection {
    /// The bytes that a row counts in the budget besides its payload and texts: columns, indexes, page overhead.
    static let bytesPerItem: Int64 = 160
    static let bytesPerMember: Int64 = 48
    /// Longer keys are rejected, because they would be copied into indexes.
    private static let keyBytesMaximum = 16 << 10

    // MARK: Items

    func put(_ entity: DiskEntity) throws -> DiskStore.PutOutcome {
        let expires = entity.expiresAt.nanosecondsSinceEpoch
        let item = NewItem(
            kind: .entity,
            space: entity.key.type,
            key: entity.key.id,
            version: entity.version,
            entityTag: entity.entityTag,
            fetched: entity.fetchedAt.nanosecondsSinceEpoch,
            validated: entity.validatedAt.nanosecondsSinceEpoch,
            expires: expires,
            removeAt: removal(expires),
            completeness: Int64(entity.completeness.rawValue),
            flags: DiskFlags.of(entity.terms, isClockUncertain: entity.isClockUncertain),
            asked: entity.asked,
            invalid: entity.invalid,
            changed: entity.changed,
            payload: entity.payload,
            fields: entity.fields
        )
        return try put(item)
    }

    func put(_ record: DiskRecord) throws {
        let recorded = record.recordedAt.nanosecondsSinceEpoch
        let expires = record.expiresAt.nanosecondsSinceEpoch
        let item = NewItem(
            kind: .record,
            space: "",
            key: record.key,
            fetched: recorded,
            validated: recorded,
            expires: expires,
            removeAt: expires,
            payload: record.payload
        )
        _ = try put(item)
    }

    func put(_ item: NewItem) throws -> DiskStore.PutOutcome {
        let outcome = try putOnce(item)
        // A damaged version must not block all others.
        guard outcome != .stored, try removeIfDamaged(item.kind, item.space, item.key) else { return outcome }
        return try putOnce(item)
    }

    private func putOnce(_ item: NewItem) throws -> DiskStore.PutOutcome {
        try checkKey(item.space, item.key)
        var item = item
        item.entityTag = try context.seal.close(
            text: item.entityTag,
            DiskSeal.tagPlace(item.kind, item.space, item.key)
        )
        let stored = try context.seal.close(
            item.payload,
            DiskChecksum.place(item.kind.rawValue, item.space, item.key)
        )
        let size = size(of: item, stored.count)
        guard size <= context.configuration.bytesMaximum else {
            if let rejection = try rejection(of: item) { return rejection }
            throw DiskError(
                .tooLarge,
                "\(stored.count) bytes do not fit into a budget of \(context.configuration.bytesMaximum). Raise bytesMaximum."
            )
        }
        guard let row = try upsert(item, stored, size: size) else { return try rejection(of: item) ?? .keptNewer }
        try run(.putPayload, row, stored)
        // Fields are readable in the file, so that there are none under a transform.
        if !item.fields.isEmpty, context.seal.transform == nil {
            try setFields(item.fields, ofType: item.space, row: row)
        }
        return .stored
    }

    private func upsert(_ item: NewItem, _ stored: [UInt8], size: Int64) throws(SQLiteError) -> Int64? {
        let content =
            context.checksum.content(item.kind, item.space, item.key, item.entityTag, stored)
            ^ ListRow.sum(of: item.members)
        let times = DiskChecksum.times(
            version: item.version,
            fetched: item.fetched,
            validated: item.validated,
            expires: item.expires
        )
        return try first(
            .upsert,
            item.kind,
            item.space,
            item.key,
            item.version,
            item.entityTag,
            item.fetched,
            item.validated,
            item.expires,
            item.removeAt,
            context.stamp,
            item.completeness,
            item.flags,
            size,
            Int64(bitPattern: content ^ times),
            item.asked,
            item.invalid,
            item.changed
        ) { $0.int64(0) }
    }

    /// The reason why the statement's guard would keep the stored item; nil if it would not.
    private func rejection(of item: NewItem) throws(SQLiteError) -> DiskStore.PutOutcome? {
        let known = try first(.describe, item.kind, item.space, item.key) {
            (version: $0.optional(0), flags: $0.int64(1), completeness: $0.int64(2), asked: $0.int64(3))
        }
        guard let known else { return nil }
        if known.flags & DiskFlags.tombstone != 0 {
            guard let old = known.version else { return item.asked.rawValue < known.asked ? .keptNewer : nil }
            guard let version = item.version, version > old else { return .keptNewer }
            return nil
        }
        guard let old = known.version, let version = item.version, version <= old else { return nil }
        if version < old { return .keptNewer }
        return item.completeness < known.completeness ? .keptMoreComplete : nil
    }

    /// The bytes that an item counts in the budget.
    private func size(of item: NewItem, _ stored: Int) -> Int64 {
        let fields = item.fields.reduce(0) { $0 + $1.bytes }
        return Self.size(item.space, item.key, item.entityTag, stored) + item.members.reduce(fields) { $0 + $1.bytes }
    }

    private static func size(_ space: String, _ key: String, _ entityTag: String?, _ stored: Int) -> Int64 {
        bytesPerItem + Int64(space.utf8.count + key.utf8.count * 2 + (entityTag?.utf8.count ?? 0) + stored)
    }

    func removal(_ expires: Int64) -> Int64 {
        (WallTime(nanosecondsSinceEpoch: expires) + context.configuration.staleRetention).nanosecondsSinceEpoch
    }

    func checkKey(_ parts: String...) throws(DiskError) {
        for part in parts where part.utf8.count > Self.keyBytesMaximum {
            throw DiskError(
                .tooLarge,
                "The key has \(part.utf8.count) bytes; the maximum is \(Self.keyBytesMaximum). Use a digest of it."
            )
        }
    }

    /// Renews times; returns the checksum of the row before and after, or nil if there is no such item, or one with another ETag.
    func touch(
        _ kind: DiskKind,
        _ space: String,
        _ key: String,
        validatedAt: WallTime,
        expiresAt: WallTime,
        flags: Int64,
        asked: Stamp?,
        ifEntityTag entityTag: String?
    ) throws(SQLiteError) -> (old: Int64, new: Int64)? {
        let known = try first(.findTimes, kind, space, key) { row in
            let (version, fetched) = (row.optional(1), row.int64(2))
            let times = DiskChecksum.times(
                version: version,
                fetched: fetched,
                validated: row.int64(3),
                expires: row.int64(4)
            )
            return (row.int64(0), version, fetched, times, sum: row.int64(5), tag: row.optionalText(6))
        }
        guard let (row, version, fetched, old, sum, tag) = known else { return nil }
        if let entityTag, context.seal.open(text: tag, DiskSeal.tagPlace(kind, space, key)) != entityTag { return nil }
        let validated = validatedAt.nanosecondsSinceEpoch
        let expires = expiresAt.nanosecondsSinceEpoch
        let new = DiskChecksum.times(version: version, fetched: fetched, validated: validated, expires: expires)
        let renewed = Int64(bitPattern: UInt64(bitPattern: sum) ^ old ^ new)
        try run(
            .touch,
            row,
            validated,
            expires,
            kind == .record ? expires : removal(expires),
            renewed,
            flags,
            asked?.rawValue
        )
        return (sum, renewed)
    }

    /// Stores a tombstone: nothing of its version or an older one replaces it, and without a version nothing that has an earlier stamp.
    func bury(_ key: EntityKey, version: Int64?, at stamp: Stamp) throws -> Bool {
        try checkKey(key.type, key.id)
        // A tombstone with a version stays.
        if version == nil { try run(.removeValue, DiskKind.entity, key.type, key.id) }
        let now = context.now
        let times = DiskChecksum.times(version: version, fetched: now, validated: now, expires: now)
        let content = context.checksum.tombstone(key.type, key.id)
        let row = try first(
            .bury,
            key.type,
            key.id,
            version,
            now,
            removal(now),
            context.stamp,
            Self.size(key.type, key.id, nil, 0),
            Int64(bitPattern: content ^ times),
            stamp
        ) { $0.int64(0) }
        guard let row else { return false }
        try run(.dropPayload, row)
        return true
    }

    // MARK: The outbox

    /// Stores an operation of the outbox with one of three statements; all but `outboxAppend` take its sequence too.
    func store(_ row: DiskOutboxRow, _ kind: DiskStatement) throws {
        let row = try row.stored(context.seal)
        var values: [any SQLValue] = [
            row.operation, row.scope, row.coalescingKey, row.idempotencyKey, row.state, row.attempts, row.enqueued,
            row.payload, row.sum,
        ]
        if kind != .outboxAppend { values.append(row.sequence) }
        try bound(kind, values).run()
    }

    // MARK: Budget and chores

    /// Removes the least recently read items until the budget holds; returns how many. Called at the end of every transaction.
    func enforceBudget() throws -> Int {
        var evicted = 0
        let maximum = try budget()
        while try totals().bytes > maximum {
            // Every counted byte belongs to an item, so totals without an item are damaged.
            guard try evictOne() else {
                throw SQLiteError(code: .corrupt, message: "the totals count bytes without an item")
            }
            evicted += 1
        }
        return evicted
    }

    /// The budget now: smaller while the disk has little space left.
    private func budget() throws -> Int64 {
        let configuration = context.configuration
        let maximum = max(0, configuration.bytesMaximum)
        guard configuration.freeBytesMinimum > 0, let free = configuration.freeBytes(configuration.directory),
            free < configuration.freeBytesMinimum
        else { return maximum }
        return min(maximum, max(maximum / 4, try totals().bytes - (configuration.freeBytesMinimum - free)))
    }

    /// Removes the least recently read item; false if there is none.
    func evictOne() throws(SQLiteError) -> Bool {
        guard let row = try first(.leastRecent, read: { $0.int64(0) }) else { return false }
        try run(.noteLost, row)
        try run(.drop, row)
        return database.changes > 0
    }

    /// Stores access times, and removes damaged items.
    func performDeferredWrites(_ deferred: (stamps: [(Int64, Int64)], damaged: [(Int64, Int64)]))
        throws(SQLiteError)
    {
        for (row, stamp) in deferred.stamps { try run(.stamp, row, stamp) }
        for (row, sum) in deferred.damaged {
            try run(.noteLost, row)
            try run(.removeRow, row, sum)
        }
    }
}
