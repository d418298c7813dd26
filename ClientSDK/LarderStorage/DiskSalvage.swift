import LarderSQLite

/// Salvages the outbox and the metadata from a damaged database: all rows that are readable and have the right checksum. Content is fetched
/// again.
struct DiskSalvage {
    private let context: DiskContext
    /// The largest number used by the outbox, as far as it is readable.
    private(set) var outboxSequence: Int64 = 0
    /// Whether the whole outbox was read and every row was sound.
    private(set) var isOutboxWhole = false

    init(_ context: DiskContext) { self.context = context }

    /// Opens a damaged database; nil if SQLite cannot open it or find the tables. It is locked against other writers if possible.
    func open(_ path: String) throws -> DiskConnection? {
        try ifReadable { () throws(SQLiteError) in
            let database = try Database(.file(path), context.options(), faults: context.files.faults)
            let connection = DiskConnection(database, context, generation: 0)
            try check(connection)
            return connection
        }
    }

    /// Whether an open connection still finds the tables. It is locked against other writers if possible.
    func canRead(_ connection: DiskConnection) throws -> Bool {
        try ifReadable { () throws(SQLiteError) in try check(connection) } != nil
    }

    private func ifReadable<Result>(_ body: () throws(SQLiteError) -> Result) throws -> Result? {
        do { return try body() } catch {
            // An unreadable file may still be locked by another connection. A copy is not.
            guard error.isDamage || error.code == .busy else { throw error }
            return nil
        }
    }

    private func check(_ connection: DiskConnection) throws(SQLiteError) {
        // Binding compiles the statement, which looks up the tables.
        try connection.prepared(.outboxList).bind(Int64.min, at: 1)
        _ = try connection.prepared(.metadataAll)
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

    /// Copies the readable rows in two transactions, so that a failure in the metadata does not affect the outbox.
    mutating func save(from source: DiskConnection, into target: DiskConnection) throws {
        try target.database.begin()
        isOutboxWhole = try saveOutbox(source, target)
        try target.run(.commit)
        try target.database.begin()
        try saveMetadata(source, target)
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
            try target.store(row, .outboxRestore)
        }
        return isWhole && isScanWhole
    }

    /// Change tokens are not kept: what they cover is fetched again.
    private func saveMetadata(_ source: DiskConnection, _ target: DiskConnection) throws {
        var values: [(key: String, stored: [UInt8], sum: Int64)] = []
        do {
            let statement = try source.prepared(.metadataAll)
            defer { statement.reset() }
            while try statement.step() {
                let (kind, key) = (statement.int64(0), statement.text(1))
                let (stored, sum) = (statement.bytes(2), statement.int64(3))
                guard kind == DiskConnection.MetadataKind.value.rawValue,
                    [sum, ~sum].contains(DiskChecksum.plain([key], [kind], stored))
                else { continue }
                values.append((key, stored, sum))
            }
        } catch {
            // The rest cannot be read.
            guard error.isDamage else { throw error }
        }
        for value in values { try target.store(value.stored, sum: value.sum, .value, value.key) }
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
