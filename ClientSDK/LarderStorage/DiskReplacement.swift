import LarderSQLite

/// Replaces a damaged or missing database so that the process may die at any moment.
///
/// A new file is filled under a temporary name. When it is complete it is renamed to "ready"; from then on the old one is set aside
/// with its log, and the new one takes its name. Requires the store's lock.
struct DiskReplacement {
    private let context: DiskContext
    private let files: DiskFiles
    /// This process's copy of the outbox, which is written into the new database.
    private let outbox: DiskOutboxCopy
    /// The number of damaged databases that are kept.
    private static let asideMaximum = 2

    init(_ context: DiskContext, _ outbox: DiskOutboxCopy) {
        self.context = context
        self.outbox = outbox
        files = context.files
    }

    /// Creates an empty database if there was none.
    func createEmpty() throws {
        try removeScraps()
        try makeNew()
        try withNew { target in
            try target.setMetadata(.own, DiskIdentity.key, DiskIdentity(replacementKnownUpTo: nil).encoded)
        }
        try files.rename(context.pathOfNew, to: context.pathOfReady)
        try finish()
    }

    /// Replaces a database in which SQLite has found damage.
    ///
    /// - Parameter live: a connection that can still read all of it, if any.
    func replace(because cause: SQLiteError, from live: DiskConnection?) throws {
        let reason: DiskStore.Recovery.Reason = cause.code == .notADatabase ? .notADatabase : .corrupt
        try replace(hasDatabase ? reason : .vanished, cause.description, from: live)
    }

    /// Saves the readable part of a damaged database and this process's outbox rows into a new one, and sets the damaged one aside.
    ///
    /// The report is written into the new database, and delivered by the process that opens it first.
    /// - Throws: if the new one cannot be created; the old one is then unchanged.
    func replace(_ reason: DiskStore.Recovery.Reason, _ description: String, from live: DiskConnection?) throws {
        try removeScraps()
        try makeNew()
        var salvage = DiskSalvage(context, outbox)
        // The old connection stays open until the file is renamed: it holds the write lock, if the file can still be locked, and no
        // other process commits into the old file.
        var damaged = try source(live, &salvage)
        try withNew { target in
            if let damaged { try salvage.save(from: damaged, into: target) }
            let count = try target.restore(outbox, salvaged: salvage.outboxSequence)
            let recovery = DiskStore.Recovery(
                reason: reason,
                description: description,
                setAside: nextQuarantinePath(),
                outboxSaved: count,
                isOutboxWhole: salvage.isOutboxWhole
            )
            try target.setMetadata(.own, DiskStore.Recovery.key, recovery.encoded)
        }
        // A copy has everything in its one file when it is closed.
        if !hasDatabase { damaged = nil }
        try files.rename(context.pathOfNew, to: context.pathOfReady)
        try finish()
        damaged = nil
        try removeScraps()
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
    private func source(_ live: DiskConnection?, _ salvage: inout DiskSalvage) throws -> DiskConnection? {
        if let live, try salvage.canRead(live) { return live }
        guard hasDatabase else {
            guard (files.size(log) ?? 0) > 0 else { return nil }
            // A log consists of whole pages. Missing ones are taken from an empty database: the tables are created in the same
            // order in every file, so their roots have the same page numbers everywhere. A copy is used, because SQLite removes a
            // log beside an empty file.
            salvage.isFragment = true
            try files.copy(context.pathOfNew, to: context.pathOfCopy, replacingStart: [])
            try files.copy(log, to: context.pathOfCopy + "-wal", replacingStart: [])
            return try salvage.open(context.pathOfCopy)
        }
        if !files.exists(log), files.exists(context.path + "-shm") {
            // With the log's index, SQLite would look for pages in a log that is missing.
            salvage.isFragment = true
            try files.copy(context.path, to: context.pathOfCopy, replacingStart: [])
            if let copy = try salvage.open(context.pathOfCopy) { return copy }
        } else if let damaged = try salvage.open(context.path) {
            return damaged
        }
        // From a sound database, because the damaged one's first page cannot be trusted.
        guard let firstPage = files.read(context.pathOfNew, first: 4_096), firstPage.count == 4_096 else { return nil }
        try makeCopy(firstPage)
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

    /// Copies the damaged database with another first page.
    ///
    /// The tables are created in the same order in every file, so their roots have the same page numbers everywhere.
    private func makeCopy(_ firstPage: [UInt8]) throws {
        // Closing the file releases this process's locks on it. None is held here: a holder has the file open already.
        var page = firstPage
        // The file change counter and the "version valid for" number disagree: SQLite then trusts the file's size (§1.3.6 of its
        page.replaceSubrange(24..<28, with: [0, 0, 0, 1])
        page.replaceSubrange(32..<40, with: [0, 0, 0, 0, 0, 0, 0, 0])
        page.replaceSubrange(92..<96, with: [0, 0, 0, 0])
        try files.copy(context.path, to: context.pathOfCopy, replacingStart: page)
        if files.exists(log) {
            try files.copy(log, to: context.pathOfCopy + "-wal", replacingStart: [])
        }
    }

    /// Sets the old database aside, its log first, and gives its name to the new one.
    private func finish() throws {
        let aside = nextQuarantinePath()
        let hadDatabase = hasDatabase
        if files.exists(log) {
            // The log of a missing database would be taken for the new one's.
            if let aside { try files.rename(log, to: aside + "-wal") } else { try files.remove(log) }
        }
        try files.remove(context.path + "-shm")
        if let aside {
            if hadDatabase {
                try files.rename(context.path, to: aside)
            } else if files.exists(context.pathOfCopy) {
                // The content of the log, as a database that can be opened.
                try files.rename(context.pathOfCopy, to: aside)
            }
        }
        try files.rename(context.pathOfReady, to: context.path)
        for old in asideNumbers().dropLast(Self.asideMaximum) {
            try files.remove(path(aside: old) + "-wal")
            try files.remove(path(aside: old))
        }
    }

    /// The path for the damaged database; nil if there is none.
    private func nextQuarantinePath() -> String? {
        hasDatabase || (files.size(log) ?? 0) > 0 ? path(aside: (asideNumbers().last ?? 0) + 1) : nil
    }

    private func removeScraps() throws {
        for path in [context.pathOfNew, context.pathOfCopy] {
            for suffix in ["-wal", "-shm", "-journal", ""] { try files.remove(path + suffix) }
        }
    }

    private func path(aside number: Int) -> String {
        "\(context.configuration.directory)/\(context.quarantinePrefix)\(number)"
    }

    private func asideNumbers() -> [Int] {
        files.names(in: context.configuration.directory).compactMap { name in
            name.hasPrefix(context.quarantinePrefix) ? Int(name.dropFirst(context.quarantinePrefix.count)) : nil
        }.sorted()
    }
}
