import LarderSQLite
import Synchronization

extension DiskStore {
    /// Identifies a state of the outbox, as far as other processes have changed it.
    package struct OutboxVersion: Sendable, Equatable {
        fileprivate let foreignCommits: UInt64
        fileprivate let generation: Int
    }

    /// The rows of the outbox at one moment.
    package struct OutboxRows: Sendable {
        /// In order.
        package let rows: [DiskOutboxRow]
        /// What is stored beside the rows (`DiskOutboxRow.noteKey`), by their numbers.
        package let notes: [Int64: [UInt8]]
        package let version: OutboxVersion
        /// Up to this number a missing row was removed.
        fileprivate let knownUpTo: Int64
    }

    /// Reads all operations of the outbox, unless only this store has changed some since a version was read. Cost: some microseconds then.
    ///
    /// Rows that are read here survive the loss of the file: they are written into the database that replaces it. Waits for
    /// writers, so that a row that is being removed is not read.
    package func outbox(since version: OutboxVersion?) throws -> OutboxRows? {
        defer { context.deliver() }
        return try writer.withLock { state in
            let read = try withWriter(&state) { connection -> OutboxRows? in
                connection.failure = nil
                try connection.perform { try connection.checkForeignCommits() }
                if connection.database.hasMoved { throw FileMoved() }
                // Before the rows are read: later commits may be read too, and are then read again.
                let now = OutboxVersion(foreignCommits: context.others.count, generation: connection.generation)
                return now == version ? nil : try Self.read(connection, now)
            }
            if let read { state.outbox.noteRead(read.rows, read.notes, knownUpTo: read.knownUpTo) }
            return read
        }
    }

    private static func read(_ connection: DiskConnection, _ version: OutboxVersion) throws -> OutboxRows {
        try connection.perform { try connection.run(.begin) }
        do {
            let rows = try connection.perform { try connection.outbox(after: 0, limit: .max) }
            if connection.database.hasMoved { throw FileMoved() }
            let notes = try connection.perform { try connection.outboxNotes() }
            let knownUpTo = try connection.perform { try connection.knownUpTo(rows) }
            try connection.perform { try connection.run(.commit) }
            return OutboxRows(rows: rows, notes: notes, version: version, knownUpTo: knownUpTo)
        } catch {
            connection.database.rollBack()
            throw error
        }
    }

    /// Completes the outbox of a database that another process has put in place of a damaged one: adds rows that the other process
    /// did not know, and removes rows that it read from an outdated file.
    ///
    /// - Returns: the number of added operations; nil if the database is not a replacement, because the store was erased.
    func join(_ connection: DiskConnection, _ outbox: inout DiskOutboxCopy) throws -> Int? {
        guard let identity = try connection.identity(), identity.isReplacement else { return nil }
        let own = outbox
        let added = try connection.database.transaction { () throws in
            for row in try connection.outbox(after: 0, limit: .max) where own.isKnownGone(row.sequence) {
                try connection.run(.outboxRemove, [], numbers: [row.sequence])
            }
            return try connection.adopt(own, knownUpTo: identity.knownUpTo)
        }
        let rows = try connection.outbox(after: 0, limit: .max)
        outbox.noteRead(rows, try connection.outboxNotes(), knownUpTo: try connection.knownUpTo(rows))
        return added
    }
}

extension DiskConnection {
    /// The identity of the database; nil if it has none.
    func identity() throws(SQLiteError) -> DiskIdentity? {
        try metadata(.own, DiskIdentity.key).flatMap { DiskIdentity(encoded: $0) }
    }

    /// Writes this process's outbox rows over the salvaged ones, and continues numbering above all used numbers.
    ///
    /// - Parameter salvaged: the largest number used by the damaged database, as far as it is readable.
    /// - Returns: the number of operations.
    func restore(_ own: DiskOutboxCopy, salvaged: Int64) throws -> Int {
        try database.transaction { () throws -> Int in
            _ = try adopt(own, knownUpTo: nil)
            try setMetadata(.own, DiskIdentity.key, DiskIdentity(replacementKnownUpTo: own.readUpTo).encoded)
            let rows = try outbox(after: Int64.min, limit: .max)
            // Other processes may have used more numbers than are known here.
            let largest = max(salvaged, own.readUpTo, rows.last?.sequence ?? 0) + Self.numbersSkipped
            try setOutboxSequence(max(largest, context.now / 1_000_000))
            return rows.count
        }
    }

    /// Writes this process's outbox rows into a database that replaces a damaged one.
    ///
    /// - Parameter knownUpTo: up to this number another process has put all rows there that are not sent or removed; nil: this process makes the
    ///   database of what was salvaged.
    /// - Returns: the number of rows that were missing.
    func adopt(_ own: DiskOutboxCopy, knownUpTo: Int64?) throws -> Int {
        var added = 0
        let stored = Dictionary(
            uniqueKeysWithValues: try outbox(after: Int64.min, limit: .max).map { ($0.sequence, $0) }
        )
        for row in own.rows.values.sorted(by: { $0.sequence < $1.sequence }) {
            if let found = stored[row.sequence] {
                // Another process has sent or changed it meanwhile.
                if knownUpTo != nil || found.attempts > row.attempts { continue }
                try run(.outboxRemove, [], numbers: [row.sequence])
            } else if let knownUpTo, row.sequence <= knownUpTo {
                continue
            } else {
                added += 1
            }
            try store(row, .adoptOutbox)
            if let note = own.notes[row.sequence] {
                try setMetadata(.value, DiskOutboxRow.noteKey(row.sequence), note)
            }
        }
        return added
    }

    /// The metadata of operations, by their numbers.
    func outboxNotes() throws(SQLiteError) -> [Int64: [UInt8]] {
        let statement = try prepared(.outboxNotes)
        defer { statement.reset() }
        var notes: [Int64: [UInt8]] = [:]
        while try statement.step() {
            let (key, value) = (statement.text(0), statement.bytes(1))
            guard let number = DiskOutboxRow.sequence(ofNote: key) else { continue }
            notes[number] = self.value(of: key, .value, value, sum: statement.int64(2))
        }
        return notes
    }

    /// The assumed maximum of numbers used by other processes that a replacing process does not know of.
    private static let numbersSkipped: Int64 = 1 << 20

    /// The number up to which a row that is not among these was removed: the largest that was used. In a database that has replaced a damaged
    /// one another process may still add rows of its own below that.
    func knownUpTo(_ rows: [DiskOutboxRow]) throws(SQLiteError) -> Int64 {
        let isReplacement = try identity()?.isReplacement ?? false
        return isReplacement ? rows.last?.sequence ?? 0 : try outboxSequence()
    }

    /// The largest number used by the outbox.
    func outboxSequence() throws(SQLiteError) -> Int64 {
        let statement = try prepared(.outboxSequence)
        defer { statement.reset() }
        return try statement.step() ? statement.int64(0) : 0
    }

    private func setOutboxSequence(_ number: Int64) throws(SQLiteError) {
        try run(.dropOutboxSequence)
        try run(.putOutboxSequence, [], numbers: [number])
    }
}
