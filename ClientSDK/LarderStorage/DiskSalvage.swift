import LarderSQLite

/// Salvages rows from a damaged database, the outbox first: all rows that are readable and have the right checksum.
struct DiskSalvage {
    private let context: DiskContext
    /// This process's copy of the outbox.
    private let outbox: DiskOutboxCopy
    /// Whether the source is known to be incomplete, although it may look complete.
    var isFragment = false
    /// The largest number used by the outbox, as far as it is readable.
    private(set) var outboxSequence: Int64 = 0
    /// Whether the whole outbox was read and every row was sound.
    private(set) var isOutboxWhole = false
    private(set) var itemsSaved = 0
    private(set) var areTokensKept = false
    private var areItemsWhole = true

    init(_ context: DiskContext, _ outbox: DiskOutboxCopy) {
        self.context = context
        self.outbox = outbox
    }

    /// Opens a damaged database; nil if SQLite cannot open it or find the tables. It is locked against other writers if possible.
    func open(_ path: String) throws -> DiskConnection? {
        do {
            let database = try Database(.file(path), context.options(), faults: context.files.faults)
            let connection = DiskConnection(database, context, generation: 0)
            try check(connection)
            return connection
        } catch {
            // An unreadable file may still be locked by another connection. A copy is not.
            guard error.isDamage || error.code == .busy else { throw error }
            return nil
        }
    }

    /// Whether an open connection still finds the tables. It is locked against other writers if possible.
    func canRead(_ connection: DiskConnection) throws -> Bool {
        do {
            try check(connection)
            return true
        } catch {
            guard error.isDamage || error.code == .busy else { throw error }
            return false
        }
    }

    private func check(_ connection: DiskConnection) throws(SQLiteError) {
        // Binding compiles the statement, which looks up the tables.
        try connection.prepared(.outboxList).bind(Int64.min, at: 1)
        try connection.prepared(.itemsUp).bind(Int64.min, at: 1)
        try lock(connection.database)
    }

    private func lock(_ database: Database) throws(SQLiteError) {
        do {
            try database.begin()
        } catch {
            // A damaged file may refuse a transaction and still be readable.
            if error.code == .inputOutput { throw error }
        }
    }

    /// Copies the readable rows in two transactions, so that a failure among the items does not affect the outbox.
    mutating func save(from source: DiskConnection, into target: DiskConnection) throws {
        try target.database.begin()
        isOutboxWhole = try saveOutbox(source, target) && !isFragment
        try target.run(.commit)
        try target.database.begin()
        let isScanWhole = try Self.scan(source, .itemsUp, .itemsDown) { statement in
            try saveItem(statement, source, target)
        }
        areItemsWhole = areItemsWhole && isScanWhole && !isFragment
        areTokensKept = try saveMetadata(source, target)
        try target.run(.commit)
    }

    private mutating func saveOutbox(_ source: DiskConnection, _ target: DiskConnection) throws -> Bool {
        var isWhole = true
        do { outboxSequence = try source.outboxSequence() } catch { guard error.isDamage else { throw error } }
        let isScanWhole = try Self.scan(source, .outboxList, .outboxDown) { statement in
            guard let row = DiskOutboxRow(statement, context.seal) else {
                isWhole = false
                return
            }
            // A file without its log may be outdated.
            guard !outbox.isKnownGone(row.sequence) else { return }
            try target.store(row, .adoptOutbox)
        }
        return isWhole && isScanWhole
    }

    private mutating func saveItem(_ statement: Statement, _ source: DiskConnection, _ target: DiskConnection) throws {
        let row = DiskRow(statement)
        let (space, key) = (statement.text(15), statement.text(16))
        var blobSize: Int64?
        var stored: [UInt8] = []
        var members = ListMembers()
        guard let kind = DiskKind(rawValue: statement.int64(14)) else {
            areItemsWhole = false
            return
        }
        do {
            if kind == .query { members = try source.members(of: row.row) }
            if let name = row.blob {
                blobSize = context.blobs.size(name)
            } else if !row.isTombstone {
                stored = try payload(of: row.row, source)
            }
        } catch {
            guard error.isDamage else { throw error }
            areItemsWhole = false
            return
        }
        let content =
            row.isTombstone
            ? context.checksum.tombstone(space, key)
            : context.checksum.content(kind, space, key, row.entityTag, stored) ^ members.sum
        // The bytes in a file are verified when they are read.
        guard row.blob == nil ? row.sum(of: content) == row.sum : blobSize != nil else {
            areItemsWhole = false
            return
        }
        if let name = row.blob, let blobSize { try target.run(.addBlob, [name], numbers: [blobSize]) }
        guard try adopt(row, kind, space, key, stored.count, members, target) else {
            areItemsWhole = false
            return
        }
        if row.blob == nil, !row.isTombstone { try target.put(payload: stored, of: row.row) }
        if kind == .query { try target.put(members.difference(from: ListMembers()), of: row.row) }
        itemsSaved += 1
    }

    private func adopt(
        _ row: DiskRow,
        _ kind: DiskKind,
        _ space: String,
        _ key: String,
        _ storedInline: Int,
        _ members: ListMembers,
        _ target: DiskConnection
    ) throws(SQLiteError) -> Bool {
        let statement = try target.prepared(.adoptItem)
        try statement.bind(row.row, at: 1)
        try statement.bind(kind.rawValue, at: 2)
        try statement.bind(space, at: 3)
        try statement.bind(key, at: 4)
        try statement.bind(row.version, at: 5)
        try statement.bind(row.entityTag, at: 6)
        try statement.bind(row.fetched, at: 7)
        try statement.bind(row.validated, at: 8)
        try statement.bind(row.expires, at: 9)
        // Values that no checksum covers are computed again.
        try statement.bind(kind == .record ? row.expires : target.removal(row.expires), at: 10)
        try statement.bind(min(row.accessed, context.stamp), at: 11)
        try statement.bind(row.completeness, at: 12)
        try statement.bind(row.source, at: 13)
        let kept = DiskFlags.tombstone | DiskFlags.clockUncertain | DiskFlags.terms
        try statement.bind(row.flags & kept, at: 14)
        try statement.bind(
            DiskConnection.size(space, key, row.entityTag, storedInline: storedInline, members: members),
            at: 15
        )
        try statement.bind(row.sum, at: 16)
        try statement.bind(row.blob, at: 17)
        try statement.bind(row.asked.rawValue, at: 18)
        try statement.bind(row.invalid.rawValue, at: 19)
        try statement.run()
        return target.database.changes > 0
    }

    private func payload(of row: Int64, _ source: DiskConnection) throws(SQLiteError) -> [UInt8] {
        let statement = try source.prepared(.findPayload)
        defer { statement.reset() }
        try statement.bind(row, at: 1)
        return try statement.step() ? statement.bytes(0) : []
    }

    /// Tokens are kept only with everything that they cover: missing changes would never be sent again.
    private func saveMetadata(_ source: DiskConnection, _ target: DiskConnection) throws -> Bool {
        var rows: [MetadataRow] = []
        var isWhole = areItemsWhole
        do {
            isWhole = try Self.readMetadata(source, into: &rows) && isWhole
        } catch {
            guard error.isDamage else { throw error }
            isWhole = false
        }
        for row in rows where isWhole || row.kind == .value {
            try target.store(row.stored, sum: row.sum, row.kind, row.key)
        }
        return isWhole
    }

    private struct MetadataRow {
        let kind: DiskConnection.MetadataKind
        let key: String
        /// As it is stored, and its checksum.
        let stored: [UInt8]
        let sum: Int64
    }

    private static func readMetadata(
        _ source: DiskConnection,
        into rows: inout [MetadataRow]
    ) throws(SQLiteError) -> Bool {
        var isWhole = true
        let statement = try source.prepared(.metadataAll)
        defer { statement.reset() }
        while try statement.step() {
            let (key, stored, sum) = (statement.text(1), statement.bytes(2), statement.int64(3))
            if let kind = DiskConnection.MetadataKind(rawValue: statement.int64(0)),
                [sum, ~sum].contains(DiskChecksum.plain([key], [kind.rawValue], stored))
            {
                rows.append(MetadataRow(kind: kind, key: key, stored: stored, sum: sum))
            } else {
                isWhole = false
            }
        }
        return isWhole
    }

    /// Reads a table from its beginning to the damage, and then from its end to the damage.
    ///
    /// - Returns: whether there was no damage.
    private static func scan(
        _ source: DiskConnection,
        _ up: DiskStatement,
        _ down: DiskStatement,
        _ each: (Statement) throws -> Void
    ) throws -> Bool {
        var last = Int64.min
        if try walk(
            source,
            up,
            from: last,
            isNext: { $0 > last },
            { statement in
                last = statement.int64(0)
                try each(statement)
            }
        ) {
            return true
        }
        let end = last
        var previous: Int64?
        _ = try walk(source, down, from: end, isNext: { row in row > end && previous.map { row < $0 } ?? true }) {
            previous = $0.int64(0)
            try each($0)
        }
        return false
    }

    /// Steps through a statement's rows; false on damage. Rows out of order are damage too: otherwise pages that point at each
    /// other would be read for ever.
    private static func walk(
        _ source: DiskConnection,
        _ kind: DiskStatement,
        from start: Int64,
        isNext: (Int64) -> Bool,
        _ each: (Statement) throws -> Void
    ) throws -> Bool {
        let statement: Statement
        do {
            statement = try source.prepared(kind)
            try statement.bind(start, at: 1)
            try statement.bind(Int64.max, at: 2)
        } catch {
            guard error.isDamage else { throw error }
            return false
        }
        defer { statement.reset() }
        while true {
            do {
                guard try statement.step() else { return true }
            } catch {
                guard error.isDamage else { throw error }
                return false
            }
            guard isNext(statement.int64(0)) else { return false }
            try each(statement)
        }
    }
}
