import LarderSQLite
import Synchronization

extension DiskStore {
    /// The size of a store.
    package struct Statistics: Sendable, Hashable {
        /// The number of entities, lists, records and tombstones.
        package let items: Int
        /// The bytes that count in the budget: payloads, files, and an estimate for rows and indexes.
        package let bytes: Int64
        /// The length of the database and its log, which may exceed the stored bytes until maintenance is done.
        package let databaseBytes: Int64
    }
}

extension DiskStore {
    /// The number of rows changed since the store was opened, counted by SQLite.
    package func rowChanges() throws(DiskError) -> Int64 {
        try withConnection { $0.database.changesTotal }
    }

    /// The maximum number of items of each kind that one step removes.
    private static let stepMaximum: Int64 = 64

    /// Does a bounded step of background work: stores access times, removes damaged and outdated items, and returns free
    /// pages. After a wrong checksum it checks the whole file once, and replaces it if it is damaged elsewhere too.
    ///
    /// Does not block readers; writers wait for one step. Call it until it is done when the app is idle: after the start, after
    /// large removals, and regularly.
    ///
    /// - Returns: whether nothing is left to do.
    @discardableResult public func maintain() throws(DiskError) -> Bool { try maintain(limit: .max) }

    /// Does a step of at most `limit` items and pages, from 1 to 64. A writer waits for one kind only.
    package func maintain(limit: Int) throws(DiskError) -> Bool {
        let limit = max(1, min(Int64(limit), Self.stepMaximum))
        let hasFiles = !context.configuration.isInMemory
        if hasFiles { try checkIfSuspect() }
        let expired = try changing { state in try removeOutdated(&state, limit) }
        let hasFreePages = hasFiles ? try withConnection { try vacuum($0, limit) } : false
        return expired < limit && !hasFreePages && !(hasFiles && context.hasChores)
    }

    /// Copies the log into the database and truncates it: afterwards removed bytes are in none of the files.
    ///
    /// - Returns: false if a reader or another process is using the log, or if there is no room. Never waits for them.
    @discardableResult package func emptyLog() throws(DiskError) -> Bool {
        guard context.files.size(context.path + "-wal") ?? 0 > 0 else { return true }
        do { return try withConnection { try $0.database.checkpoint() } } catch {
            guard error.code == .busy || error.code == .full else { throw error }
            return false
        }
    }

    /// After a wrong checksum, checks the structure of the file and replaces it if needed: writing to a damaged page would spread
    /// the damage. Reads the whole file without blocking others.
    private func checkIfSuspect() throws(DiskError) {
        guard context.takeSuspicion() else { return }
        // A new connection has no cached pages.
        readers.withLock { $0.idle = [] }
        try readOnce { connection in
            guard let first = try connection.database.integrityProblems().first else { return }
            throw SQLiteError(code: .corrupt, message: first)
        }
    }

    private func removeOutdated(_ state: inout WriterState, _ limit: Int64) throws -> Int {
        let now = context.now
        // The transaction itself carries out the chores.
        let count = try commit(&state, .processDeath) { transaction throws in
            try transaction.run(.noteExpired, now)
            try transaction.run(.expire, now, limit)
            return transaction.database.changes
        }
        if count > 0 { context.post(.expired(count: count)) }
        return count
    }

    /// Returns some pages if many are free; a few are kept for reuse. Returns whether there were many.
    private func vacuum(_ connection: DiskConnection, _ limit: Int64) throws -> Bool {
        let free = try connection.database.integer("PRAGMA freelist_count")
        let all = try connection.database.integer("PRAGMA page_count")
        guard free > 16, free > all / 10 else { return false }
        try connection.database.releasePages(limit)
        return try connection.database.integer("PRAGMA freelist_count") < free
    }

    /// The size of the store.
    package func statistics() throws(DiskError) -> Statistics {
        let totals = try readOnce { try $0.totals() }
        let sizes = ["", "-wal"].map { context.files.size(context.path + $0) ?? 0 }
        return Statistics(items: Int(totals.items), bytes: totals.bytes, databaseBytes: sizes.reduce(0, +))
    }

    /// Removes the least recently read items until at most `bytes` are stored. A store in memory gives the free memory back.
    package func evict(toBytes bytes: Int64) throws(DiskError) {
        try changing { state in
            try commit(&state, .processDeath) { transaction throws in
                while try transaction.totals().bytes > bytes, try transaction.evictOne() {}
            }
            guard context.configuration.isInMemory, let connection = state.connection else { return }
            try connection.perform { try connection.database.releasePages(.max) }
        }
    }

    // MARK: Erasing

    /// Removes everything that the store has created, and its directory unless it has other files.
    ///
    /// Every later call throws `.erased`, so that late writes cannot bring anything back. Another process that has the store open
    /// gets `.cannotOpen` on its next write. If another process has erased it before, and a client has made another store in its place, that
    /// one stays as it is.
    /// - Throws: the disk's error. Call again to remove the rest.
    public func erase() throws(DiskError) {
        guard !context.configuration.isInMemory else {
            return writer.withLock { state in
                state.isErased = true
                state.connection = nil
            }
        }
        let isReplaced = isReplaced
        // The outbox first: while its lock is there, other processes begin purged content anew.
        let failure = isReplaced ? nil : eraseOutbox()
        do {
            try writer.withLock { state in
                state.isErased = true
                giveUpConnections(&state)
                let files = context.files
                let directory = context.configuration.directory
                guard !isReplaced, files.exists(directory) else { return }
                let isMissing = !files.exists(context.pathOfLock)
                // An earlier call has removed everything but the directory.
                if isMissing, !files.names(in: directory).contains(where: { $0.hasPrefix("store.") }) {
                    _ = try files.removeDirectory(directory)
                    return
                }
                try files.locked(context.pathOfLock) {
                    // Another process may have erased it while this call waited for the lock.
                    guard isMissing || !context.isReplaced else { return }
                    for name in files.names(in: directory) where name.hasPrefix("store.") && name != "store.lock" {
                        try files.remove("\(directory)/\(name)")
                    }
                    // Removed last, while it is locked: its absence tells other processes that the store was erased and not lost.
                    try files.remove(context.pathOfLock)
                }
                _ = try files.removeDirectory(directory)
            }
        } catch {
            throw DiskError(error)
        }
        if let failure { throw failure }
    }

    /// Whether the store was erased, and another client has made one in its place.
    package var isReplaced: Bool { context.isReplaced || openedOutboxStore?.isReplaced ?? false }

    private func eraseOutbox() -> DiskError? {
        // A store that never had an outbox must not get one.
        guard openedOutboxStore != nil || context.files.exists(outboxDirectory) else { return nil }
        do { try outboxStore().erase() } catch { return error }
        return nil
    }
}
