import LarderSQLite
import Synchronization

extension DiskStore {
    /// The writing connection; opens it if needed.
    ///
    /// - Parameters:
    ///   - isRecovering: whether this process has just replaced a damaged file.
    ///   - lost: the connection to a file that was unlinked; it can still be read.
    func connectedWriter(
        _ state: inout WriterState,
        isRecovering: Bool = false,
        lost: DiskConnection? = nil
    ) throws -> DiskConnection {
        if state.isErased { throw Self.erased }
        if let connection = state.connection { return connection }
        if context.configuration.isInMemory { return try openInMemory(&state) }
        let wasOpen = state.wasOpen && !startsAnew(&state)
        if wasOpen {
            guard context.files.exists(context.pathOfLock) else { throw hasVanished }
        } else {
            try context.files.makeDirectory(context.configuration.directory)
        }
        let outbox = state.outbox
        let generation = state.generation
        let (connection, isReplaced) = try context.files.locked(context.pathOfLock, makes: !wasOpen) {
            // The store may have been erased while this call waited for the lock.
            guard context.files.exists(context.pathOfLock) else { throw hasVanished }
            return try openOrReplace(outbox, generation, wasOpen: wasOpen, lost)
        }
        let isOwn = isRecovering || isReplaced
        if wasOpen, !isOwn {
            try adoptReplacement(connection, &state.outbox)
            // Changes by other processes while it was closed are unknown, and memory may have values that were lost here.
            context.others.note()
        }
        state.outbox.database = try connection.identity()
        state.connection = connection
        state.wasOpen = true
        isPrepared.store(true, ordering: .releasing)
        return connection
    }

    /// Whether the directory was removed by the system, and not by a sign-out. Then nothing of it is known any more.
    private func startsAnew(_ state: inout WriterState) -> Bool {
        guard !context.files.exists(context.pathOfLock), let path = context.configuration.restartsWhileExists,
            context.files.exists(path)
        else { return false }
        state.outbox = DiskOutboxCopy()
        state.foldersToSweep = nil
        context.others.note()
        context.post(.purged)
        return true
    }

    var hasVanished: DiskError {
        DiskError(
            .cannotOpen,
            "The store in \(context.configuration.directory) has vanished: its directory was removed, or another process has erased it. "
                + "Open the store again if it is still needed."
        )
    }

    /// Opens the file, or replaces it if it is damaged or missing; returns whether it was replaced. Requires the store's lock.
    private func openOrReplace(
        _ outbox: DiskOutboxCopy,
        _ generation: Int,
        wasOpen: Bool,
        _ lost: DiskConnection?
    ) throws -> (DiskConnection, isReplaced: Bool) {
        let replacement = DiskReplacement(context, outbox)
        try replacement.finishInterrupted()
        let files = context.files
        // SQLite too treats a file of one byte as empty.
        let size = files.size(context.path)
        if (size ?? 0) <= 1 {
            if wasOpen || size != nil || files.exists(context.path + "-wal") || files.exists(context.path + "-shm") {
                let message = "The file \(context.path) is missing or empty."
                try replacement.replace(.vanished, message, from: lost)
                return (try open(generation: generation), true)
            }
            try replacement.createEmpty()
            return (try open(generation: generation), false)
        }
        // SQLite creates the log before its index and removes it after the index: an index alone means that the log was removed.
        // Checked in this order, because another process may be closing the file.
        if !files.exists(context.path + "-wal"), files.exists(context.path + "-shm") {
            let message = "The log \(context.path)-wal is missing: everything stored since the last checkpoint is lost."
            try replacement.replace(.corrupt, message, from: nil)
            return (try open(generation: generation), true)
        }
        do {
            return (try open(generation: generation), false)
        } catch let error as SQLiteError where error.isDamage {
            try replacement.replace(because: error, from: nil)
            return (try open(generation: generation), true)
        }
    }

    /// Checks whether the file has been replaced: a replacement by another process gets this process's outbox rows; if the store
    /// was erased and created again, nothing is restored.
    private func adoptReplacement(_ connection: DiskConnection, _ outbox: inout DiskOutboxCopy) throws {
        guard try connection.identity() != outbox.database else { return }
        guard let added = try join(connection, &outbox) else {
            outbox = DiskOutboxCopy()
            return
        }
        guard added > 0 else { return }
        context.post(
            .recovered(
                DiskStore.Recovery(
                    reason: .replaced,
                    description: "Another process has replaced the file \(context.path), which was damaged or missing.",
                    setAside: nil,
                    outboxSaved: added,
                    isOutboxWhole: false
                )
            )
        )
    }

    /// Replaces the file, unless another process has done so.
    func recover(_ state: inout WriterState, _ cause: SQLiteError) throws {
        if state.isErased { throw Self.erased }
        let known = state.connection
        let isElsewhere = known?.database.hasMoved ?? false || !context.files.exists(context.path)
        // A file that cannot be opened (too many open files) is not damaged.
        guard isElsewhere || cause.isDamage else { throw DiskError(cause) }
        giveUpConnections(&state)
        var isReplaced = false
        if !isElsewhere {
            guard context.files.exists(context.pathOfLock) else { throw hasVanished }
            isReplaced = try context.files.locked(context.pathOfLock, makes: false) {
                // Another process may have done the work while this call waited for the lock.
                if let known, known.database.hasMoved { return false }
                guard context.files.exists(context.pathOfLock) else { throw hasVanished }
                let live = known.flatMap { $0.hasLostLog ? $0 : nil }
                try DiskReplacement(context, state.outbox).replace(because: cause, from: live)
                return true
            }
        }
        _ = try connectedWriter(&state, isRecovering: isReplaced, lost: known)
    }

    private func openInMemory(_ state: inout WriterState) throws -> DiskConnection {
        var options = context.options()
        options.reclaimsPages = true
        let database = try Database(.memory, options)
        try DiskSchema.migrations.run(on: database)
        let connection = DiskConnection(database, context, generation: state.generation)
        state.connection = connection
        isPrepared.store(true, ordering: .releasing)
        return connection
    }

    private func open(generation: Int) throws -> DiskConnection {
        let database = try Database(.file(context.path), context.options(), faults: context.files.faults)
        // A long read lets the log grow. Afterwards it is truncated to this.
        try database.execute("PRAGMA journal_size_limit = 4194304")
        // Debian's SQLite does this by default: removed content is overwritten.
        try database.execute("PRAGMA secure_delete = ON")
        do {
            try DiskSchema.migrations.run(on: database)
        } catch let error as MigrationError {
            switch error {
            case .foreignFile where try hasOurTables(database), .newerSchema(10_000..., _):
                // Both numbers are in the first page, so damage there changes them too.
                throw SQLiteError(code: .corrupt, message: error.description)
            case .failed(_, let cause): throw cause
            default: throw error
            }
        }
        let connection = DiskConnection(database, context, generation: generation)
        try connection.checkForeignCommits()
        // A foreign schema is detected here at the latest.
        if let bytes = try connection.metadata(.own, DiskStore.Recovery.key) {
            if let recovery = DiskStore.Recovery(encoded: bytes) { context.post(.recovered(recovery)) }
            try connection.setMetadata(.own, DiskStore.Recovery.key, nil)
        }
        try connection.checkTransform()
        connection.noteLog()
        return connection
    }

    private func hasOurTables(_ database: Database) throws(SQLiteError) -> Bool {
        try database.integer("SELECT count(*) FROM sqlite_schema WHERE name IN ('outbox', 'items', 'payloads')") == 3
    }
}
