import LarderSQLite
import Synchronization

/// What one step of maintenance has done.
public struct DiskMaintenance: Sendable, Hashable {
    /// How many entities, lists and records were removed for their age.
    public internal(set) var expired = 0
    /// How many files of blobs were removed that nothing refers to.
    public internal(set) var blobsRemoved = 0
    /// How many pages were given back to the file system; the file shrinks when its log is next copied into it.
    public internal(set) var pagesFreed = 0
    /// Whether nothing was left to do. If not, call again when there is time.
    public internal(set) var isDone = true
}

/// How much a store holds.
public struct DiskStatistics: Sendable, Hashable {
    /// Entities, lists, records and tombstones.
    public let items: Int
    /// What counts in the budget: payloads, files, and an estimate for rows and indexes.
    public let bytes: Int64
    /// The length of the database and its log, which may be longer than what it holds until maintenance is done.
    public let databaseBytes: Int64
}

extension DiskStore {
    /// How many rows this store has changed since it was opened: SQLite's own count.
    package func rowChanges() throws(DiskError) -> Int64 {
        do { return try writer.withLock { state in try connectedWriter(&state).database.changesTotal } } catch {
            throw DiskError(error)
        }
    }

    /// The most that one step of maintenance removes of each sort.
    private static let stepMaximum: Int64 = 64

    /// Does a small, bounded part of what is to be done in the background: writes down what was read when, removes what is
    /// damaged or outdated and files that nobody knows, and gives pages back. After a checksum was wrong it looks at the
    /// whole file once, and replaces it if it is damaged elsewhere too.
    ///
    /// Readers are never in its way, nor it in theirs; writers wait for the length of a step. Call it until it is done, when
    /// nothing else is to be done: after the start, after much was removed, and from time to time.
    public func maintain() throws(DiskError) -> DiskMaintenance {
        defer { context.deliver() }
        do {
            try checkIfSuspect()
            return try writer.withLock { state in
                var report = DiskMaintenance()
                report.expired = try removeOutdated(&state)
                if report.expired > 0 { context.post(.expired(count: report.expired)) }
                let connection = try connectedWriter(&state)
                report.blobsRemoved = try connection.perform { try connection.removeUnusedBlobs(Self.stepMaximum) }
                let isSwept = try connection.perform { try sweep(&state, connection, &report) }
                report.pagesFreed = try connection.perform { try vacuum(connection) }
                report.isDone =
                    isSwept && report.expired < Self.stepMaximum && report.blobsRemoved < Self.stepMaximum
                    && report.pagesFreed == 0 && !context.hasChores
                return report
            }
        } catch {
            throw DiskError(error)
        }
    }

    /// After a wrong checksum, looks whether the file's structure is sound, and replaces it if not: to write into a page that
    /// is damaged spreads the damage. Cost: it reads the whole file, in nobody's way.
    private func checkIfSuspect() throws {
        guard context.takeSuspicion() else { return }
        let generation = writer.withLock { $0.generation }
        let problems: [String]
        do {
            // With a connection of its own, that has seen none of the pages before.
            let database = try context.files.locked(context.pathOfLock, isShared: true, makes: false) {
                try Database(.file(context.path), context.options(readsOnly: true), faults: context.files.faults)
            }
            problems = try database.integrityProblems()
        } catch let error as SQLiteError where error.isDamage {
            problems = [error.description]
        }
        guard let first = problems.first else { return }
        try writer.withLock { state in
            guard state.generation == generation else { return }
            try recover(&state, SQLiteError(code: .corrupt, message: first))
        }
    }

    private func removeOutdated(_ state: inout WriterState) throws -> Int {
        let now = context.now
        // The transaction itself does the chores.
        return try commit(&state, .processDeath) { transaction throws in
            let connection = transaction.connection
            return try connection.perform {
                try connection.run(.expire, [], numbers: [now, Self.stepMaximum])
                return connection.database.changes
            }
        }
    }

    /// Looks into one folder of blobs for files that no row knows: a process died before it could commit them.
    private func sweep(
        _ state: inout WriterState,
        _ connection: DiskConnection,
        _ report: inout DiskMaintenance
    ) throws -> Bool {
        let blobs = context.blobs
        var folders = state.foldersToSweep ?? blobs.entries().folders
        guard state.foldersToSweep == nil || !folders.isEmpty else { return true }
        let isFirst = state.foldersToSweep == nil
        let folder = folders.popLast()
        // Blobs are made under the write lock. What is there while we hold it, and is not known, nobody will ever know.
        report.blobsRemoved += try connection.database.transaction { () throws in
            var removed = 0
            if isFirst { for name in blobs.entries().temporaries { try blobs.removeTemporary(name) } }
            if let folder {
                for name in blobs.names(in: folder) where try !connection.knowsBlob(name) {
                    try blobs.remove(name)
                    removed += 1
                }
            }
            return removed
        }
        state.foldersToSweep = folders
        return folders.isEmpty
    }

    /// Gives back some pages if many are free: a few will be used again.
    private func vacuum(_ connection: DiskConnection) throws -> Int {
        let free = try connection.database.integer("PRAGMA freelist_count")
        let all = try connection.database.integer("PRAGMA page_count")
        guard free > 16, free > all / 10 else { return 0 }
        try connection.database.execute("PRAGMA incremental_vacuum(64)")
        return Int(free - (try connection.database.integer("PRAGMA freelist_count")))
    }

    /// How much is stored.
    public func statistics() throws(DiskError) -> DiskStatistics {
        let totals = try readOnce { try $0.totals() }
        let sizes = ["", "-wal"].map { context.files.size(context.path + $0) ?? 0 }
        return DiskStatistics(items: Int(totals.items), bytes: totals.bytes, databaseBytes: sizes.reduce(0, +))
    }

    // MARK: Erasing

    /// Removes everything that the store has ever made, and its directory unless others keep files there.
    ///
    /// From then on every call throws `.erased`, so that nothing that arrives late can bring something back. Another process
    /// that has the store open gets `.cannotOpen` when it next writes.
    /// - Throws: what the disk did. Call again to try what is left.
    public func erase() throws(DiskError) {
        do {
            try writer.withLock { state in
                state.isErased = true
                state.outbox = DiskOutboxCopy()
                giveUpConnections(&state)
                let files = context.files
                let directory = context.configuration.directory
                guard files.exists(directory) else { return }
                try files.locked(context.pathOfLock) {
                    try context.blobs.erase()
                    for name in files.names(in: directory) where name.hasPrefix("store.") && name != "store.lock" {
                        try files.remove("\(directory)/\(name)")
                    }
                    // Last, and while it is held: a process that has the store open knows by that that it was erased, and not lost.
                    try files.remove(context.pathOfLock)
                }
                _ = try files.removeDirectory(directory)
            }
        } catch {
            throw DiskError(error)
        }
    }
}
