import LarderSQLite

/// Puts a new database in the place of one that is damaged or gone, so that the process may die at any moment.
///
/// A new file is filled under another name; when it is whole it is named «ready», and from then on the old one is in the
/// way: it is set aside with its log, and the new one takes its name. To be called with the store's lock held.
struct DiskReplacement {
    private let context: DiskContext
    private let files: DiskFiles
    /// What this process knows of the outbox: it is written into the new database.
    private let outbox: DiskOutboxCopy
    /// How many damaged databases are kept.
    private static let asideMaximum = 2

    init(_ context: DiskContext, _ outbox: DiskOutboxCopy) {
        self.context = context
        self.outbox = outbox
        files = context.files
    }

    /// Makes an empty database where there was none.
    func startAnew() throws {
        try removeScraps()
        try makeNew()
        try withNew { target in try target.setMetadata(.own, DiskIdentity.key, DiskIdentity().encoded) }
        try files.rename(context.pathOfNew, to: context.pathOfReady)
        try finish()
    }

    /// Replaces a database in which SQLite has found damage.
    ///
    /// - Parameter live: a connection that still reads all of it; nil where there is none.
    func replace(because cause: SQLiteError, from live: DiskConnection?) throws {
        let reason: DiskRecovery.Reason = cause.code == .notADatabase ? .notADatabase : .corrupt
        try replace(hasDatabase ? reason : .vanished, cause.description, from: live)
    }

    /// Saves what can be saved from a damaged database, and what this process knows of the outbox, into a new one, and sets the damaged
    /// one aside.
    ///
    /// What happened is written into the new one, and reported by whoever opens it first.
    /// - Throws: where the new one cannot be made; then the old one is where it was.
    func replace(_ reason: DiskRecovery.Reason, _ description: String, from live: DiskConnection?) throws {
        try removeScraps()
        try makeNew()
        var salvage = DiskSalvage(context, outbox)
        // What is open stays so until the file has its other name: it holds the write lock, if the file still has one, and
        // no other process commits into what is set aside.
        var damaged = try source(live, &salvage)
        try withNew { target in
            if let damaged { try salvage.save(from: damaged, into: target) }
            let count = try target.restore(outbox, salvaged: salvage.outboxSequence)
            let recovery = DiskRecovery(
                reason: reason,
                description: description,
                setAside: nextAside(),
                outboxSaved: count,
                isOutboxWhole: salvage.isOutboxWhole,
                itemsSaved: salvage.itemsSaved,
                areTokensKept: salvage.areTokensKept
            )
            try target.setMetadata(.own, DiskRecovery.key, recovery.encoded)
        }
        // Of a copy all is in its one file when it is closed.
        if !hasDatabase { damaged = nil }
        try files.rename(context.pathOfNew, to: context.pathOfReady)
        try finish()
        damaged = nil
        try removeScraps()
    }

    /// Goes on where a process died that had a new database ready.
    func finishInterrupted() throws {
        guard files.exists(context.pathOfReady) else { return }
        try finish()
        try removeScraps()
    }

    // MARK: Steps

    private var log: String { context.path + "-wal" }

    /// SQLite takes a file of one byte for an empty one.
    private var hasDatabase: Bool { (files.size(context.path) ?? 0) > 1 }

    /// Opens what can be read best of the damaged database; nil where nothing can be.
    private func source(_ live: DiskConnection?, _ salvage: inout DiskSalvage) throws -> DiskConnection? {
        if let live, try salvage.canRead(live) { return live }
        guard hasDatabase else {
            guard (files.size(log) ?? 0) > 0 else { return nil }
            // A log has whole pages. Those that it does not have are taken from an empty database: the tables are made in the same order
            // in every file, so their roots have the same page numbers everywhere. A copy, because SQLite removes a log beside an empty
            // file.
            salvage.isFragment = true
            try files.copy(context.pathOfNew, to: context.pathOfCopy, replacingStart: [])
            try files.copy(log, to: context.pathOfCopy + "-wal", replacingStart: [])
            return try salvage.open(context.pathOfCopy)
        }
        if !files.exists(log), files.exists(context.path + "-shm") {
            // The log's index would have SQLite look for pages in a log that is gone.
            salvage.isFragment = true
            try files.copy(context.path, to: context.pathOfCopy, replacingStart: [])
            if let copy = try salvage.open(context.pathOfCopy) { return copy }
        } else if let damaged = try salvage.open(context.path) {
            return damaged
        }
        // Of a database that is as it should be: the damaged one's first page is in doubt.
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
    /// The tables are made in the same order in every file, so their roots have the same page numbers everywhere.
    private func makeCopy(_ firstPage: [UInt8]) throws {
        // To close the file costs this process its locks on it. None is held here: who holds one has the file open already.
        var page = firstPage
        // File change counter and «version valid for» disagree: SQLite then takes the file's size for true (§1.3.6 of its
        // file format). The list of free pages is not used.
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
        let aside = nextAside()
        let hadDatabase = hasDatabase
        if files.exists(log) {
            // The log of a database that is gone would be taken for the new one's.
            if let aside { try files.rename(log, to: aside + "-wal") } else { try files.remove(log) }
        }
        try files.remove(context.path + "-shm")
        if let aside {
            if hadDatabase {
                try files.rename(context.path, to: aside)
            } else if files.exists(context.pathOfCopy) {
                // What the log had, as a database that can be opened.
                try files.rename(context.pathOfCopy, to: aside)
            }
        }
        try files.rename(context.pathOfReady, to: context.path)
        for old in asideNumbers().dropLast(Self.asideMaximum) {
            try files.remove(path(aside: old) + "-wal")
            try files.remove(path(aside: old))
        }
    }

    /// Where the database is put when it is set aside; nil where there is none.
    private func nextAside() -> String? {
        hasDatabase || (files.size(log) ?? 0) > 0 ? path(aside: (asideNumbers().last ?? 0) + 1) : nil
    }

    private func removeScraps() throws {
        for path in [context.pathOfNew, context.pathOfCopy] {
            for suffix in ["-wal", "-shm", "-journal", ""] { try files.remove(path + suffix) }
        }
    }

    private func path(aside number: Int) -> String {
        "\(context.configuration.directory)/\(context.prefixOfAside)\(number)"
    }

    private func asideNumbers() -> [Int] {
        files.names(in: context.configuration.directory).compactMap { name in
            name.hasPrefix(context.prefixOfAside) ? Int(name.dropFirst(context.prefixOfAside.count)) : nil
        }.sorted()
    }
}
