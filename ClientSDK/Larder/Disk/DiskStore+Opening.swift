import LarderSQLite
import Synchronization

extension DiskStore {
    /// The connection that writes, opened if it is not.
    ///
    /// - Parameters:
    ///   - isRecovering: whether this process has just replaced a damaged file by what could be saved of it.
    ///   - lost: the connection that was open on a file that has lost its name: it can still be read.
    func connectedWriter(
        _ state: inout WriterState,
        isRecovering: Bool = false,
        lost: DiskConnection? = nil
    ) throws -> DiskConnection {
        if state.isErased { throw Self.erased }
        if let connection = state.connection { return connection }
        let wasOpen = state.wasOpen
        if wasOpen {
            guard context.files.exists(context.pathOfLock) else { throw hasVanished }
        } else {
            try context.files.makeDirectory(context.configuration.directory)
        }
        let outbox = state.outbox
        let generation = state.generation
        let (connection, isReplaced) = try context.files.locked(context.pathOfLock, makes: !wasOpen) {
            // Who waited for the lock may find that the store was erased meanwhile.
            guard context.files.exists(context.pathOfLock) else { throw hasVanished }
            return try openOrReplace(outbox, generation, wasOpen: wasOpen, lost)
        }
        let isOwn = isRecovering || isReplaced
        if wasOpen, !isOwn {
            try adoptReplacement(connection, &state.outbox)
            // What others did while it was not open is not known. What was lost here, memory may still have.
            context.others.note()
        }
        state.outbox.database = try connection.identity()
        state.connection = connection
        state.wasOpen = true
        isPrepared.store(true, ordering: .releasing)
        return connection
    }

    private var hasVanished: DiskError {
        DiskError(
            .cannotOpen,
            "The store in \(context.configuration.directory) has vanished: its directory was removed, or another process has erased it. "
                + "Open the store anew if it is still wanted."
        )
    }

    /// Opens the file, or replaces one that is damaged or gone; whether it was replaced. With the store's lock held.
    private func openOrReplace(
        _ outbox: DiskOutboxCopy,
        _ generation: Int,
        wasOpen: Bool,
        _ lost: DiskConnection?
    ) throws -> (DiskConnection, isReplaced: Bool) {
        let replacement = DiskReplacement(context, outbox)
        try replacement.finishInterrupted()
        let files = context.files
        // SQLite too takes a file of one byte for an empty one.
        let size = files.size(context.path)
        if (size ?? 0) <= 1 {
            if wasOpen || size != nil || files.exists(context.path + "-wal") || files.exists(context.path + "-shm") {
                let message = "The file \(context.path) is gone or empty."
                try replacement.replace(.vanished, message, from: lost)
                return (try open(generation: generation), true)
            }
            try replacement.startAnew()
            return (try open(generation: generation), false)
        }
        // SQLite makes the log before its index, and removes it after that: an index alone is left only where the log was removed.
        // Looked for in this order, because another process may be closing the file.
        if !files.exists(context.path + "-wal"), files.exists(context.path + "-shm") {
            let message = "The log \(context.path)-wal is gone, and with it what was stored since the last checkpoint."
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

    /// Looks whether the file is another than before: one that another process has put in the place of a damaged one gets what this
    /// process knows of the outbox; and where the store was erased and begun anew, nothing is brought back.
    private func adoptReplacement(_ connection: DiskConnection, _ outbox: inout DiskOutboxCopy) throws {
        guard try connection.identity() != outbox.database else { return }
        guard let added = try join(connection, &outbox) else {
            outbox = DiskOutboxCopy()
            return
        }
        guard added > 0 else { return }
        context.post(
            .recovered(
                DiskRecovery(
                    reason: .replaced,
                    description: "Another process has replaced the file \(context.path), which was damaged or gone.",
                    setAside: nil,
                    outboxSaved: added,
                    isOutboxWhole: false,
                    itemsSaved: 0,
                    areTokensKept: false
                )
            )
        )
    }

    /// Replaces the file, or finds that another process has done so.
    func recover(_ state: inout WriterState, _ cause: SQLiteError) throws {
        if state.isErased { throw Self.erased }
        let known = state.connection
        let isElsewhere = known?.database.hasMoved ?? false || !context.files.exists(context.path)
        // A file that cannot be opened (there are too many open) is not damaged by that.
        guard isElsewhere || cause.isDamage else { throw DiskError(cause) }
        giveUpConnections(&state)
        var isReplaced = false
        if !isElsewhere {
            guard context.files.exists(context.pathOfLock) else { throw hasVanished }
            isReplaced = try context.files.locked(context.pathOfLock, makes: false) {
                // Who waited for the lock may find the work done.
                if let known, known.database.hasMoved { return false }
                guard context.files.exists(context.pathOfLock) else { throw hasVanished }
                let live = known.flatMap { $0.hasLostLog ? $0 : nil }
                try DiskReplacement(context, state.outbox).replace(because: cause, from: live)
                return true
            }
        }
        _ = try connectedWriter(&state, isRecovering: isReplaced, lost: known)
    }

    private func open(generation: Int) throws -> DiskConnection {
        let database = try Database(.file(context.path), context.options(), faults: context.files.faults)
        // A reader that stays long makes the log long. Afterwards it is cut to this.
        try database.execute("PRAGMA journal_size_limit = 4194304")
        // Debian's SQLite does this by default: what is removed is overwritten.
        try database.execute("PRAGMA secure_delete = ON")
        do {
            try DiskSchema.migrations.run(on: database)
        } catch let error as MigrationError {
            switch error {
            case .foreignFile where try hasOurTables(database), .newerSchema(10_000..., _):
                // The two numbers lie in the file's first page, and who damages that changes them too.
                throw SQLiteError(code: .corrupt, message: error.description)
            case .failed(_, let cause): throw cause
            default: throw error
            }
        }
        let connection = DiskConnection(database, context, generation: generation)
        try connection.lookForOthers()
        // Here at the latest a schema that is not ours is noticed.
        if let bytes = try connection.metadata(.own, DiskRecovery.key) {
            if let recovery = DiskRecovery(encoded: bytes) { context.post(.recovered(recovery)) }
            try connection.setMetadata(.own, DiskRecovery.key, nil)
        }
        connection.noteLog()
        return connection
    }

    private func hasOurTables(_ database: Database) throws(SQLiteError) -> Bool {
        try database.integer("SELECT count(*) FROM sqlite_schema WHERE name IN ('outbox', 'items', 'payloads')") == 3
    }
}
