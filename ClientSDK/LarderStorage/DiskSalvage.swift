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

    /// Reads the outbox from its beginning to the damage, and then from its end to the damage.
    private mutating func saveOutbox(_ source: DiskConnection, _ target: DiskConnection) throws -> Bool {
        do { outboxSequence = try source.outboxSequence() } catch { guard error.damage != nil else { throw error } }
        var isWhole = true
        // Rows out of order are damage too: otherwise pages that point at each other would be read for ever.
        var (first, last) = (Int64.min, Int64.max)
        for statement in [DiskStatement.outboxList, .outboxDown] {
            let isUp = statement == .outboxList
            let isRead = try Self.walk(source, statement, [first, .max]) { found in
                let number = found.int64(0)
                guard number > first, number < last else { return false }
                if isUp { first = number } else { last = number }
                if let row = DiskOutboxRow(found, context.seal) {
                    try target.store(row, .outboxRestore)
                } else {
                    isWhole = false
                }
                return true
            }
            if isUp, isRead { return isWhole }
        }
        return false
    }

    /// Change tokens are not kept: what they cover is fetched again.
    private func saveMetadata(_ source: DiskConnection, _ target: DiskConnection) throws {
        _ = try Self.walk(source, .metadataAll) { statement in
            let (kind, key) = (statement.int64(0), statement.text(1))
            let (stored, sum) = (statement.bytes(2), statement.int64(3))
            if kind == DiskConnection.MetadataKind.value.rawValue,
                [sum, ~sum].contains(DiskChecksum.plain([key], [kind], stored))
            {
                try target.store(stored, sum: sum, .value, key)
            }
            return true
        }
    }

    /// Steps through a statement's rows until one does not count; false if it does not, and on damage.
    private static func walk(
        _ source: DiskConnection,
        _ kind: DiskStatement,
        _ values: [Int64] = [],
        _ each: (Statement) throws -> Bool
    ) throws -> Bool {
        let statement: Statement
        do {
            statement = try source.prepared(kind)
            for (index, value) in values.enumerated() { try statement.bind(value, at: Int32(index + 1)) }
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
            guard try each(statement) else { return false }
        }
    }
}
