import LarderSQLite
import LarderTime

extension DiskConnection {
    /// The bytes that a row counts in the budget besides its payload and texts: columns, indexes, page overhead.
    private static let bytesPerItem: Int64 = 160
    static let bytesPerMember: Int64 = 48
    /// The bytes that one commit evicts at most because the disk has little space left.
    private static let bytesPerEviction: Int64 = 4 << 20
    /// Longer keys are rejected, because they would be copied into indexes.
    private static let keyBytesMaximum = 16 << 10

    // MARK: Items

    /// Stores an entity, unless the stored one is newer, or of the same version and more complete.
    ///
    /// - Throws: `.tooLarge`, `.transform`, or the disk's error.
    @discardableResult package func put(_ entity: DiskEntity) throws(DiskError) -> DiskStore.PutOutcome {
        try put(entity, as: .entity)
    }

    /// Stores an item of a kind, whose name is that of an entity.
    func put(
        _ item: DiskEntity,
        as kind: DiskKind,
        members: [ListRow] = []
    ) throws(DiskError) -> DiskStore.PutOutcome {
        let outcome = try putOnce(item, kind, members)
        // A damaged version must not block all others.
        guard outcome != .stored, try removeIfDamaged(kind, item.key) else { return outcome }
        return try putOnce(item, kind, members)
    }

    private func putOnce(
        _ item: DiskEntity,
        _ kind: DiskKind,
        _ members: [ListRow]
    ) throws(DiskError) -> DiskStore.PutOutcome {
        let (space, key) = (item.key.type, item.key.id)
        try checkKey(space, key)
        var item = item
        item.entityTag = try context.seal.close(text: item.entityTag, DiskSeal.tagPlace(kind, space, key))
        item.payload = try context.seal.close(item.payload, DiskChecksum.place(kind.rawValue, space, key))
        // Fields are readable in the file, so that there are none under a transform.
        if context.seal.transform != nil { item.fields = [] }
        let size = size(of: item, members)
        guard size <= context.configuration.bytesMaximum else {
            if let rejection = try rejection(of: item, kind) { return rejection }
            throw DiskError(
                .tooLarge,
                "\(item.payload.count) bytes do not fit into a budget of \(context.configuration.bytesMaximum). Raise bytesMaximum."
            )
        }
        guard let row = try upsert(item, kind, members, size: size) else {
            return try rejection(of: item, kind) ?? .keptNewer
        }
        try run(.putPayload, row, item.payload)
        if !item.fields.isEmpty { try setFields(item.fields, ofType: space, row: row) }
        return .stored
    }

    /// - Parameter item: with its entity tag and payload as they are stored.
    private func upsert(
        _ item: DiskEntity,
        _ kind: DiskKind,
        _ members: [ListRow],
        size: Int64
    ) throws(DiskError) -> Int64? {
        let (space, key) = (item.key.type, item.key.id)
        let expires = item.expiresAt.nanosecondsSinceEpoch
        let content =
            context.checksum.content(kind, space, key, item.entityTag, item.payload) ^ ListRow.sum(of: members)
        return try first(
            .upsert,
            kind,
            space,
            key,
            item.version,
            item.entityTag,
            item.fetchedAt.nanosecondsSinceEpoch,
            item.validatedAt.nanosecondsSinceEpoch,
            expires,
            removal(expires),
            context.stamp,
            Int64(item.completeness.rawValue),
            item.times.flags,
            size,
            Int64(bitPattern: content ^ item.timesSum),
            item.asked,
            item.invalid,
            item.changed
        ) { $0.int64(0) }
    }

    /// The reason why the statement's guard would keep the stored item; nil if it would not.
    private func rejection(of item: DiskEntity, _ kind: DiskKind) throws(DiskError) -> DiskStore.PutOutcome? {
        let known = try first(.describe, kind, item.key.type, item.key.id) {
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
        return item.completeness.rawValue < known.completeness ? .keptMoreComplete : nil
    }

    /// The bytes that an item counts in the budget.
    private func size(of item: DiskEntity, _ members: [ListRow]) -> Int64 {
        let indexed = item.fields.reduce(0) { $0 + $1.bytes } + members.reduce(0) { $0 + $1.bytes }
        return Self.size(item.key.type, item.key.id, item.entityTag, item.payload.count) + indexed
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

    /// Renews the times and the stamp of an entity or a list after a validation.
    ///
    /// - Parameters:
    ///   - key: the key of the entity or the list.
    ///   - times: the new times. That of the content stays.
    ///   - asked: when the request began; nil: after its last invalidation.
    ///   - entityTag: the confirmed validator. What has another one is not changed. Nil: any.
    /// - Returns: the checksum of the row before and after; nil if there was none to renew.
    @discardableResult
    package func touch(
        _ key: StoredKey,
        _ times: RowTimes,
        asked: Stamp? = nil,
        ifEntityTag entityTag: String? = nil
    ) throws(DiskError) -> (old: Int64, new: Int64)? {
        let (kind, item) = (key.kind, key.item)
        let known = try first(.findTimes, kind, item.type, item.id) { row in
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
        if let entityTag, context.seal.open(text: tag, DiskSeal.tagPlace(kind, item.type, item.id)) != entityTag {
            return nil
        }
        let validated = times.validatedAt.nanosecondsSinceEpoch
        let expires = times.expiresAt.nanosecondsSinceEpoch
        let new = DiskChecksum.times(version: version, fetched: fetched, validated: validated, expires: expires)
        let renewed = Int64(bitPattern: UInt64(bitPattern: sum) ^ old ^ new)
        try run(.touch, row, validated, expires, removal(expires), renewed, times.flags, asked?.rawValue)
        return (sum, renewed)
    }

    /// Removes an entity or a list. Lists still contain the key of a removed entity, and the entities of a removed list stay.
    package func remove(_ key: StoredKey) throws(DiskError) {
        try run(.remove, key.kind, key.item.type, key.item.id)
    }

    /// Removes the value of an entity. A tombstone stays: what it keeps out stays out.
    package func removeValue(_ key: EntityKey) throws(DiskError) {
        try run(.removeValue, DiskKind.entity, key.type, key.id)
    }

    /// Removes an entity, and leaves a tombstone: for as long as stale items are kept, nothing of its version or an older one replaces it,
    /// and without a version nothing that has an earlier stamp.
    ///
    /// - Parameter version: the version in which it was deleted; nil: not known.
    /// - Returns: false if the stored entity is newer than the deletion, and stays.
    package func bury(_ key: EntityKey, version: Int64?, at stamp: Stamp = .never) throws(DiskError) -> Bool {
        try checkKey(key.type, key.id)
        // A tombstone with a version stays.
        if version == nil { try removeValue(key) }
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

    /// Removes all entities of a type, and their tombstones.
    package func removeEntities(ofType type: String) throws(DiskError) { try run(.removeSpace, DiskKind.entity, type) }

    /// Marks an entity or a list as stale until it has a later stamp.
    ///
    /// - Parameter stamp: nil: a later one than what has confirmed it.
    package func invalidate(_ key: StoredKey, at stamp: Stamp? = nil) throws(DiskError) {
        try run(.invalidate, key.kind, key.item.type, key.item.id, stamp)
    }

    /// Removes all entities and lists. Metadata, tokens and the outbox stay.
    package func removeAllItems() throws(DiskError) { try run(.removeAll) }

    // MARK: The outbox

    /// Appends an operation to the outbox; returns its sequence number.
    @discardableResult package func append(_ row: DiskOutboxRow) throws(DiskError) -> Int64 {
        try perform {
            let reserve = DiskReserve(context)
            guard try reserve.make() else { throw reserve.failure }
            try store(row, .outboxAppend)
            return database.lastInsertRowID
        }
    }

    /// Replaces the operation with the row's sequence number.
    package func update(_ row: DiskOutboxRow) throws(DiskError) {
        guard row.operation != DiskOutboxRow.unreadableName else {
            throw DiskError(
                .transform,
                "Operation \(row.sequence) cannot be decoded and is not changed. Open the store with the payload transform and "
                    + "key that it was written with, or drop the operation."
            )
        }
        try store(row, .outboxUpdate)
        try storeNote(row.note, of: row.sequence)
    }

    /// Removes an operation and its note from the outbox.
    package func removeOperation(_ sequence: Int64) throws(DiskError) {
        try run(.outboxRemove, sequence)
        try storeNote(nil, of: sequence)
    }

    func storeNote(_ note: [UInt8]?, of sequence: Int64) throws(DiskError) {
        try setMetadata(.value, DiskOutboxRow.noteKey(sequence), note)
    }

    /// Stores an operation of the outbox with one of three statements; all but `outboxAppend` take its sequence too.
    func store(_ row: DiskOutboxRow, _ kind: DiskStatement) throws(DiskError) {
        let row = try row.stored(context.seal)
        var values: [any SQLValue] = [
            row.operation, row.scope, row.coalescingKey, row.idempotencyKey, row.state, row.attempts, row.enqueued,
            row.payload, row.sum,
        ]
        if kind != .outboxAppend { values.append(row.sequence) }
        try using(kind, values) { try $0.run() }
    }

    // MARK: Budget and chores

    /// Removes the least recently read items until the budget holds; returns how many. Called at the end of every transaction.
    func enforceBudget() throws(DiskError) -> Int {
        var evicted = 0
        let maximum = try budget()
        while try totals().bytes > maximum {
            // Every counted byte belongs to an item, so totals without an item are damaged.
            guard try evictOne() else { throw damaged("the totals count bytes without an item") }
            evicted += 1
        }
        return evicted
    }

    /// The budget now: smaller while the disk has little space left.
    private func budget() throws(DiskError) -> Int64 {
        let configuration = context.configuration
        let maximum = max(0, configuration.bytesMaximum)
        guard configuration.freeBytesMinimum > 0, let free = configuration.freeBytes(configuration.directory),
            free < configuration.freeBytesMinimum
        else { return maximum }
        // The pages of what was evicted and the log get free with the next maintenance.
        let pages = try perform { try database.integer("PRAGMA freelist_count") * database.integer("PRAGMA page_size") }
        let missing = configuration.freeBytesMinimum - free - pages - (context.files.size(context.path + "-wal") ?? 0)
        guard missing > 0 else { return maximum }
        // Evicting writes what it frees to the log.
        return min(maximum, max(maximum / 4, try totals().bytes - min(missing, Self.bytesPerEviction)))
    }

    /// Removes the least recently read item; false if there is none.
    func evictOne() throws(DiskError) -> Bool {
        guard let row = try first(.leastRecent, read: { $0.int64(0) }) else { return false }
        try run(.noteLost, row)
        try run(.drop, row)
        return database.changes > 0
    }

    /// Stores access times, and removes damaged items.
    func performDeferredWrites(_ deferred: (stamps: [(Int64, Int64)], damaged: [(Int64, Int64)])) throws(DiskError) {
        for (row, stamp) in deferred.stamps { try run(.stamp, row, stamp) }
        for (row, sum) in deferred.damaged {
            try run(.noteLost, row)
            try run(.removeRow, row, sum)
        }
    }
}
