import LarderSQLite

/// Puts a new database in the place of one that is damaged or gone, so that the process may die at any moment.
///
/// A new file is filled under another name; when it is whole it is named «ready», and from then on the old one is in the
/// way: it is set aside with its log, and the new one takes its name. To be called with the store's lock held.
struct DiskReplacement {
    private let context: DiskContext
    private let files: DiskFiles
    /// How many damaged databases are kept.
    private static let asideMaximum = 2

    init(_ context: DiskContext) {
        self.context = context
        files = context.files
    }

    /// Makes an empty database.
    func startAnew(hasVanished: Bool) throws {
        try removeScraps()
        try makeNew()
        if hasVanished {
            let recovery = DiskRecovery(
                reason: .vanished,
                description: "The file \(context.path) is gone or empty.",
                setAside: nil,
                outboxSaved: 0,
                isOutboxWhole: false,
                itemsSaved: 0,
                areTokensKept: false
            )
            try withNew { target in try target.setMetadata(.own, DiskRecovery.key, recovery.encoded) }
        }
        try files.rename(context.pathOfNew, to: context.pathOfReady)
        try finish()
    }

    /// Saves what can be saved from a damaged database into a new one, and sets the damaged one aside.
    ///
    /// What happened is written into the new one, and reported by whoever opens it first.
    /// - Throws: where the new one cannot be made; then the old one is where it was.
    func replace(because cause: SQLiteError) throws {
        try removeScraps()
        try makeNew()
        // Of a database that is as it should be: the damaged one's first page is in doubt.
        let firstPage = files.read(context.pathOfNew, first: 4_096) ?? []
        var salvage = DiskSalvage(context)
        // What is open stays so until the file has its other name: it holds the write lock, if the file still has one, and
        // no other process commits into what is set aside.
        var damaged = try salvage.open(context.path)
        if damaged == nil, firstPage.count == 4_096 {
            try makeCopy(firstPage)
            damaged = try salvage.open(context.pathOfCopy)
        }
        try withNew { target in
            if let damaged { try salvage.save(from: damaged, into: target) }
            let recovery = DiskRecovery(
                reason: cause.code == .notADatabase ? .notADatabase : .corrupt,
                description: cause.description,
                setAside: nextAside(),
                outboxSaved: salvage.outboxSaved,
                isOutboxWhole: salvage.isOutboxWhole,
                itemsSaved: salvage.itemsSaved,
                areTokensKept: salvage.areTokensKept
            )
            try target.setMetadata(.own, DiskRecovery.key, recovery.encoded)
        }
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
        if files.exists(context.path + "-wal") {
            try files.copy(context.path + "-wal", to: context.pathOfCopy + "-wal", replacingStart: [])
        }
    }

    /// Sets the old database aside, its log first, and gives its name to the new one.
    private func finish() throws {
        let log = context.path + "-wal"
        let aside = nextAside()
        if files.exists(log) {
            // The log of a database that is gone would be taken for the new one's.
            if let aside { try files.rename(log, to: aside + "-wal") } else { try files.remove(log) }
        }
        try files.remove(context.path + "-shm")
        if let aside { try files.rename(context.path, to: aside) }
        try files.rename(context.pathOfReady, to: context.path)
        for old in asideNumbers().dropLast(Self.asideMaximum) {
            try files.remove(path(aside: old) + "-wal")
            try files.remove(path(aside: old))
        }
    }

    /// Where the database is put when it is set aside; nil where there is none.
    private func nextAside() -> String? {
        (files.size(context.path) ?? 0) > 1 ? path(aside: (asideNumbers().last ?? 0) + 1) : nil
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
