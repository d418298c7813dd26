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
    var source: Int64 = 0
    var flags: Int64 = 0
    var asked = Stamp.never
    var invalid = Stamp.never
    var changed = Stamp.never
    let payload: [UInt8]
    var fields: [DiskField] = []
    var members = ListMembers()
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
            source: Int64(entity.source.rawValue),
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
        let isBlob = stored.count > context.configuration.blobThreshold
        let size = size(of: item, storedInline: isBlob ? 0 : stored.count)
        guard size + (isBlob ? Int64(stored.count) : 0) <= context.configuration.bytesMaximum else {
            if let rejection = try rejection(of: item) { return rejection }
            throw DiskError(
                .tooLarge,
                "\(stored.count) bytes do not fit into a budget of \(context.configuration.bytesMaximum). Raise bytesMaximum."
            )
        }
        var blob: String?
        if isBlob {
            // The guard in the statement decides; this check only avoids writing a file in vain.
            if let rejection = try rejection(of: item) { return rejection }
            blob = try write(blob: stored)
        }
        guard let row = try upsert(item, stored, size: size, blob: blob) else {
            return try rejection(of: item) ?? .keptNewer
        }
        if blob == nil {
            try put(payload: stored, of: row)
        } else {
            try run(.dropPayload, [], numbers: [row])
        }
        // Fields are readable in the file, so that there are none under a transform.
        if !item.fields.isEmpty, context.seal.transform == nil {
            try setFields(item.fields, ofType: item.space, row: row)
        }
        return .stored
    }

    private func upsert(_ item: NewItem, _ stored: [UInt8], size: Int64, blob: String?) throws(SQLiteError) -> Int64? {
        let content =
            context.checksum.content(item.kind, item.space, item.key, item.entityTag, stored) ^ item.members.sum
        let times = DiskChecksum.times(
            version: item.version,
            fetched: item.fetched,
            validated: item.validated,
            expires: item.expires
        )
        let statement = try prepared(.upsert)
        defer { statement.reset() }
        try statement.bind(item.kind.rawValue, at: 1)
        try statement.bind(item.space, at: 2)
        try statement.bind(item.key, at: 3)
        try statement.bind(item.version, at: 4)
        try statement.bind(item.entityTag, at: 5)
        try statement.bind(item.fetched, at: 6)
        try statement.bind(item.validated, at: 7)
        try statement.bind(item.expires, at: 8)
        try statement.bind(item.removeAt, at: 9)
        try statement.bind(context.stamp, at: 10)
        try statement.bind(item.completeness, at: 11)
        try statement.bind(item.source, at: 12)
        try statement.bind(size, at: 13)
        try statement.bind(Int64(bitPattern: content ^ times), at: 14)
        try statement.bind(blob, at: 15)
        try statement.bind(item.flags, at: 16)
        try statement.bind(item.asked.rawValue, at: 17)
        try statement.bind(item.invalid.rawValue, at: 18)
        try statement.bind(item.changed.rawValue, at: 19)
        guard try statement.step() else { return nil }
        let row = statement.int64(0)
        // All changes happen before the first row is returned; this step ends the statement.
        _ = try statement.step()
        return row
    }

    /// The reason why the statement's guard would keep the stored item; nil if it would not.
    private func rejection(of item: NewItem) throws(SQLiteError) -> DiskStore.PutOutcome? {
        let statement = try prepared(.describe)
        defer { statement.reset() }
        try statement.bind(item.kind.rawValue, at: 1)
        try statement.bind(item.space, at: 2)
        try statement.bind(item.key, at: 3)
        guard try statement.step() else { return nil }
        let known = statement.isNull(0) ? nil : statement.int64(0)
        if statement.int64(1) & DiskFlags.tombstone != 0 {
            guard let known else { return item.asked.rawValue < statement.int64(3) ? .keptNewer : nil }
            guard let version = item.version, version > known else { return .keptNewer }
            return nil
        }
        guard let known, let version = item.version, version <= known else { return nil }
        if version < known { return .keptNewer }
        return item.completeness < statement.int64(2) ? .keptMoreComplete : nil
    }

    func put(payload stored: [UInt8], of row: Int64) throws(SQLiteError) {
        let statement = try prepared(.putPayload)
        try statement.bind(row, at: 1)
        try statement.bind(stored, at: 2)
        try statement.run()
    }

    private func write(blob stored: [UInt8]) throws(SQLiteError) -> String {
        let name = BlobFiles.name(for: stored)
        try context.files.makeDirectory(context.blobs.directory)
        // Noted as created: a file that is not committed is removed.
        if try context.blobs.write(stored, name) { createdBlobs.append(name) }
        try run(.addBlob, [name], numbers: [Int64(stored.count)])
        return name
    }

    private func size(of item: NewItem, storedInline: Int) -> Int64 {
        let fields = item.fields.reduce(0) { $0 + $1.bytes }
        return Self.size(item.space, item.key, item.entityTag, storedInline: storedInline, members: item.members)
            + fields
    }

    /// The bytes that an item counts in the budget, without its file.
    static func size(
        _ space: String,
        _ key: String,
        _ entityTag: String?,
        storedInline: Int,
        members: ListMembers = ListMembers()
    ) -> Int64 {
        let texts = space.utf8.count + key.utf8.count * 2 + (entityTag?.utf8.count ?? 0)
        return Self.bytesPerItem + Int64(texts + storedInline) + members.bytes
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
        let statement = try prepared(.findTimes)
        defer { statement.reset() }
        try statement.bind(kind.rawValue, at: 1)
        try statement.bind(space, at: 2)
        try statement.bind(key, at: 3)
        guard try statement.step() else { return nil }
        if let entityTag {
            let known = statement.isNull(6) ? nil : statement.text(6)
            guard context.seal.open(text: known, DiskSeal.tagPlace(kind, space, key)) == entityTag else { return nil }
        }
        let (row, sum) = (statement.int64(0), statement.int64(5))
        let version = statement.isNull(1) ? nil : statement.int64(1)
        let fetched = statement.int64(2)
        let old = DiskChecksum.times(
            version: version,
            fetched: fetched,
            validated: statement.int64(3),
            expires: statement.int64(4)
        )
        let validated = validatedAt.nanosecondsSinceEpoch
        let expires = expiresAt.nanosecondsSinceEpoch
        let new = DiskChecksum.times(version: version, fetched: fetched, validated: validated, expires: expires)
        let renewed = Int64(bitPattern: UInt64(bitPattern: sum) ^ old ^ new)
        let removeAt = kind == .record ? expires : removal(expires)
        let touch = try prepared(.touch)
        for (index, number) in [row, validated, expires, removeAt, renewed, flags].enumerated() {
            try touch.bind(number, at: Int32(index + 1))
        }
        try touch.bind(asked?.rawValue, at: 7)
        try touch.run()
        return (sum, renewed)
    }

    /// Stores a tombstone: nothing of its version or an older one replaces it, and without a version nothing that has an earlier stamp.
    func bury(_ key: EntityKey, version: Int64?, at stamp: Stamp) throws -> Bool {
        try checkKey(key.type, key.id)
        // A tombstone with a version stays.
        if version == nil { try run(.removeValue, .entity, key.type, key.id) }
        let now = context.now
        let times = DiskChecksum.times(version: version, fetched: now, validated: now, expires: now)
        let content = context.checksum.tombstone(key.type, key.id)
        let statement = try prepared(.bury)
        defer { statement.reset() }
        try statement.bind(key.type, at: 1)
        try statement.bind(key.id, at: 2)
        try statement.bind(version, at: 3)
        try statement.bind(now, at: 4)
        try statement.bind(removal(now), at: 5)
        try statement.bind(context.stamp, at: 6)
        try statement.bind(Self.size(key.type, key.id, nil, storedInline: 0), at: 7)
        try statement.bind(Int64(bitPattern: content ^ times), at: 8)
        try statement.bind(stamp.rawValue, at: 9)
        guard try statement.step() else { return false }
        let row = statement.int64(0)
        _ = try statement.step()
        try run(.dropPayload, [], numbers: [row])
        return true
    }

    // MARK: The outbox

    /// Stores an operation of the outbox with one of three statements; all but `outboxAppend` take its sequence too.
    func store(_ row: DiskOutboxRow, _ kind: DiskStatement) throws {
        let row = try row.stored(context.seal)
        let statement = try prepared(kind)
        try statement.bind(row.operation, at: 1)
        try statement.bind(row.scope, at: 2)
        try statement.bind(row.coalescingKey, at: 3)
        try statement.bind(row.idempotencyKey, at: 4)
        try statement.bind(row.state, at: 5)
        try statement.bind(row.attempts, at: 6)
        try statement.bind(row.enqueued, at: 7)
        try statement.bind(row.payload, at: 8)
        try statement.bind(row.sum, at: 9)
        if kind != .outboxAppend { try statement.bind(row.sequence, at: 10) }
        try statement.run()
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
        let statement = try prepared(.leastRecent)
        let row = try statement.step() ? statement.int64(0) : nil
        statement.reset()
        guard let row else { return false }
        try run(.noteLost, [], numbers: [row])
        try run(.drop, [], numbers: [row])
        return database.changes > 0
    }

    /// Stores access times, and removes damaged items.
    func performDeferredWrites(_ deferred: (stamps: [(Int64, Int64)], damaged: [(Int64, DiskContext.Damage)]))
        throws(SQLiteError)
    {
        for (row, stamp) in deferred.stamps { try run(.stamp, [], numbers: [row, stamp]) }
        for (row, damage) in deferred.damaged {
            try run(.noteLost, [], numbers: [row])
            try run(.removeRow, [], numbers: [row, damage.sum])
            if database.changes > 0, damage.reason == .fileMissing {
                context.post(damage.event)
            }
        }
    }

    /// Removes up to `limit` unreferenced files in a transaction of its own; returns how many.
    func removeUnusedBlobs(_ limit: Int64) throws -> Int {
        guard try hasUnusedBlobs() else { return 0 }
        return try database.transaction { () throws in
            let names = try unusedBlobs(limit)
            for name in names {
                // The file first: if the process dies here, the row is found again, and a file stored later under this name
                // is written again.
                try context.blobs.remove(name)
                try run(.dropBlob, [name])
            }
            return names.count
        }
    }

    private func hasUnusedBlobs() throws(SQLiteError) -> Bool { try !unusedBlobs(1).isEmpty }

    private func unusedBlobs(_ limit: Int64) throws(SQLiteError) -> [String] {
        let statement = try prepared(.unusedBlobs)
        defer { statement.reset() }
        try statement.bind(limit, at: 1)
        var names: [String] = []
        while try statement.step() { names.append(statement.text(0)) }
        return names
    }

    func knowsBlob(_ name: String) throws(SQLiteError) -> Bool {
        let statement = try prepared(.knowsBlob)
        defer { statement.reset() }
        try statement.bind(name, at: 1)
        return try statement.step()
    }
}
