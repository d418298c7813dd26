import LarderSQLite
import Synchronization

/// Replaces a damaged or missing database so that the process may die at any moment.
///
/// A new file is filled under a temporary name. When it is complete it is renamed to "ready"; from then on the old one is set aside
/// with its log, and the new one takes its name. Requires the store's lock.
struct DiskReplacement {
    private let context: DiskContext
    private let files: DiskFiles
    /// The assumed maximum of numbers of operations that were used in the damaged database and are not known here.
    private static let numbersSkipped: Int64 = 1 << 20

    init(_ context: DiskContext) {
        self.context = context
        files = context.files
    }

    /// Creates an empty database if there was none.
    func createEmpty() throws {
        try removeScraps()
        try makeNew()
        try files.rename(context.pathOfNew, to: context.pathOfReady)
        try finish()
    }

    /// Saves the readable operations and metadata of a damaged or missing database into a new one, adds the operations that only this
    /// process knows, and sets the damaged one aside.
    ///
    /// The report is written into the new database, and delivered by the process that opens it first.
    /// - Parameter live: a connection that had it open, if any.
    /// - Throws: if the new one cannot be created; the old one is then unchanged.
    func replace(because cause: SQLiteError, from live: DiskConnection?) throws {
        try removeScraps()
        // The log of an earlier one must not be taken for that of this one.
        try files.remove(aside + "-wal")
        try makeNew()
        var salvage = DiskSalvage(context)
        // The old connection stays open until the file is renamed: it holds the write lock, if the file can still be locked, and no
        // other process commits into the old file.
        var damaged = try source(live, salvage)
        try withNew { target in
            if let damaged { try salvage.save(from: damaged, into: target) }
            let recovery = DiskStore.Recovery(
                reason: !hasDatabase ? .vanished : cause.code == .notADatabase ? .notADatabase : .corrupt,
                description: cause.description,
                setAside: hasDamaged ? aside : nil,
                outboxSaved: try complete(target, used: salvage.outboxSequence),
                isOutboxWhole: salvage.isOutboxWhole
            )
            try target.setMetadata(.own, DiskStore.Recovery.key, recovery.encoded)
        }
        try files.rename(context.pathOfNew, to: context.pathOfReady)
        try finish()
        damaged = nil
        try removeScraps()
    }

    /// Adds the operations that only this process knows, and continues the numbers above all used ones; returns the number of operations.
    private func complete(_ target: DiskConnection, used: Int64) throws -> Int {
        try target.database.transaction { () throws in
            let known = context.knownOperations.withLock { $0 }
            for row in known?() ?? [] where row.operation != DiskOutboxRow.unreadableName {
                try target.store(row, .outboxRestore)
                if target.database.changes > 0 { try target.storeNote(row.note, of: row.sequence) }
            }
            let rows = try target.outbox(after: Int64.min, limit: .max)
            let largest = max(used, rows.last?.sequence ?? 0) + Self.numbersSkipped
            try target.run(.dropOutboxSequence)
            try target.run(.putOutboxSequence, max(largest, context.now / 1_000_000))
            return rows.count
        }
    }

    /// Completes the replacement of a process that died with a new database ready.
    func finishInterrupted() throws {
        guard files.exists(context.pathOfReady) else { return }
        try finish()
        try removeScraps()
    }

    // MARK: Steps

    private var log: String { context.path + "-wal" }

    /// SQLite treats a file of one byte as empty.
    private var hasDatabase: Bool { (files.size(context.path) ?? 0) > 1 }

    /// Opens the most readable version of the damaged database; nil if there is none.
    private func source(_ live: DiskConnection?, _ salvage: DiskSalvage) throws -> DiskConnection? {
        if let live, try salvage.canRead(live) { return live }
        guard hasDatabase else { return nil }
        if let damaged = try salvage.open(context.path) { return damaged }
        guard try makeCopy() else { return nil }
        return try salvage.open(context.pathOfCopy)
    }

    private func makeNew() throws {
        try withNew { connection in try DiskSchema.migrations.run(on: connection.database) }
    }

    /// Opens the new database, and closes it so that all of it is in its one file.
    private func withNew(_ body: (DiskConnection) throws -> Void) throws {
        var options = context.options()
        options.creates = true
        options.reclaimsPages = true
        do {
            let database = try Database(.file(context.pathOfNew), options, faults: files.faults)
            let connection = DiskConnection(database, context, generation: 0)
            try body(connection)
            guard try database.checkpoint() else {
                throw SQLiteError(code: .busy, message: "the new database is in use")
            }
        }
        guard (files.size(context.pathOfNew + "-wal") ?? 0) == 0 else {
            throw SQLiteError(code: .inputOutput, message: "the new database was not closed")
        }
        try files.remove(context.pathOfNew + "-wal")
        try files.remove(context.pathOfNew + "-shm")
    }

    /// A larger database has content, which is fetched again.
    private static let copiedMaximum: Int64 = 64 << 20

    /// Copies the damaged database with the first page of a sound one, because its own cannot be trusted.
    ///
    /// The tables are created in the same order in every file, so their roots have the same page numbers everywhere.
    /// - Returns: false if it cannot be read or is too large.
    private func makeCopy() throws -> Bool {
        // Closing the file releases this process's locks on it. None is held here: a holder has the file open already.
        guard (files.size(context.path) ?? 0) <= Self.copiedMaximum, var bytes = files.read(context.path),
            var page = files.read(context.pathOfNew, first: 4_096), page.count == 4_096
        else { return false }
        // The file change counter and the "version valid for" number disagree: SQLite then trusts the file's size (§1.3.6 of its
        // file format).
        page.replaceSubrange(24..<28, with: [0, 0, 0, 1])
        page.replaceSubrange(32..<40, with: [0, 0, 0, 0, 0, 0, 0, 0])
        page.replaceSubrange(92..<96, with: [0, 0, 0, 0])
        bytes.replaceSubrange(0..<min(4_096, bytes.count), with: page)
        try files.write(bytes, to: context.pathOfCopy, temporary: context.pathOfCopy + "-journal")
        if let bytes = files.read(log) {
            try files.write(bytes, to: context.pathOfCopy + "-wal", temporary: context.pathOfCopy + "-journal")
        }
        return true
    }

    /// The path for the damaged database.
    private var aside: String { context.configuration.directory + "/store.damaged" }

    private var hasDamaged: Bool { hasDatabase || (files.size(log) ?? 0) > 0 }

    /// Sets the old database aside, in place of an earlier one, its log first, and gives its name to the new one.
    private func finish() throws {
        if files.exists(log) {
            // The log of a missing database would be taken for the new one's.
            if hasDamaged { try files.rename(log, to: aside + "-wal") } else { try files.remove(log) }
        }
        try files.remove(context.path + "-shm")
        if hasDatabase { try files.rename(context.path, to: aside) }
        try files.rename(context.pathOfReady, to: context.path)
    }

    private func removeScraps() throws {
        for path in [context.pathOfNew, context.pathOfCopy] {
            for suffix in ["-wal", "-shm", "-journal", ""] { try files.remove(path + suffix) }
        }
    }
}
