import LarderSQLite
import Synchronization

extension DiskStore {
    /// The writing connection; opens it if needed.
    ///
    /// - Parameter lost: the connection to a file that was unlinked; it can still be read.
    func connectedWriter(_ state: inout WriterState, lost: DiskConnection? = nil) throws -> DiskConnection {
        if state.isErased { throw Self.erased }
        if let connection = state.connection { return connection }
        if context.configuration.isInMemory { return try openInMemory(&state) }
        let wasOpen = state.wasOpen && !startsAnew()
        if wasOpen {
            try requireExistence()
        } else {
            guard !context.isReplaced else { throw hasVanished }
            try context.files.makeDirectory(context.configuration.directory)
        }
        let connection = try context.files.locked(context.pathOfLock, makes: !wasOpen) {
            // The store may have been erased while this call waited for the lock.
            try requireExistence()
            let connection = try openOrReplace(state.generation + 1, wasOpen: wasOpen, lost)
            context.identify()
            // The content of an outbox that the system may remove knows by the outbox which store it is.
            context.configuration.content()?.context.identify()
            // The file may have been replaced, here or by another process. No reader opens one before the lock is released.
            closeReaders(&state)
            return connection
        }
        // Changes by other processes while it was closed are unknown, and memory may have values that were lost here.
        if wasOpen { context.foreignCommits.wrappingAdd(1, ordering: .releasing) }
        state.connection = connection
        state.wasOpen = true
        isPrepared.store(true, ordering: .releasing)
        return connection
    }

    /// Whether the directory was removed by the system, and not by a sign-out. Then nothing of it is known any more.
    private func startsAnew() -> Bool {
        guard !context.files.exists(context.pathOfLock), let path = context.configuration.restartsWhileExists,
            context.files.exists(path), !context.isReplaced
        else { return false }
        context.foreignCommits.wrappingAdd(1, ordering: .releasing)
        context.post(.purged)
        return true
    }

    /// - Throws: `.cannotOpen` if the store was erased, also if another client has made one in its place.
    func requireExistence() throws(DiskError) {
        guard context.files.exists(context.pathOfLock), !context.isReplaced else { throw hasVanished }
    }

    var hasVanished: DiskError {
        DiskError(
            .cannotOpen,
            "The store in \(context.configuration.directory) has vanished: its directory was removed, or another process has erased it. "
                + "Open the store again if it is still needed."
        )
    }

    /// Opens the file, or replaces it if it is damaged or missing. Requires the store's lock.
    private func openOrReplace(_ generation: Int, wasOpen: Bool, _ lost: DiskConnection?) throws -> DiskConnection {
        let replacement = DiskReplacement(context)
        try replacement.finishInterrupted()
        let files = context.files
        // SQLite too treats a file of one byte as empty.
        guard (files.size(context.path) ?? 0) > 1 else {
            if wasOpen || ["", "-wal", "-shm"].contains(where: { files.exists(context.path + $0) }) {
                let message = "The file \(context.path) is missing or empty."
                try replacement.replace(because: SQLiteError(code: .corrupt, message: message), from: lost)
            } else {
                try replacement.createEmpty()
            }
            return try open(generation: generation)
        }
        do { return try open(generation: generation) } catch {
            guard let damage = DiskError(error).damage else { throw error }
            try replacement.replace(because: damage, from: nil)
            return try open(generation: generation)
        }
    }

    /// Replaces the file, unless another process has done so.
    ///
    /// - Parameter reader: the connection that has found the damage, if it is not the writing one.
    func recover(_ state: inout WriterState, _ cause: SQLiteError, from reader: DiskConnection? = nil) throws {
        if state.isErased { throw Self.erased }
        let known = state.connection
        let isElsewhere = (known ?? reader)?.database.hasMoved ?? false || !context.files.exists(context.path)
        // A file that cannot be opened (too many open files) is not damaged.
        guard isElsewhere || cause.isDamage else { throw DiskError(cause) }
        giveUpConnections(&state)
        if !isElsewhere {
            try requireExistence()
            try context.files.locked(context.pathOfLock, makes: false) {
                // Another process may have done the work while this call waited for the lock.
                if let found = known ?? reader, found.database.hasMoved { return }
                try requireExistence()
                let replacement = DiskReplacement(context)
                // That process has died before it was done.
                if context.files.exists(context.pathOfReady) { return try replacement.finishInterrupted() }
                try replacement.replace(because: cause, from: known)
            }
        }
        _ = try connectedWriter(&state, lost: known)
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
        let database = try openDatabase()
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
        return connection
    }

    /// Opens the file. If the disk has no room for the index of its log, what is reserved for sending from the outbox makes room: otherwise
    /// nothing could be read or sent.
    private func openDatabase() throws -> Database {
        func open() throws(SQLiteError) -> Database {
            try Database(.file(context.path), context.options(), faults: context.files.faults)
        }
        do { return try open() } catch {
            guard error.code == .full,
                try DiskReserve(context).release() || DiskReserve(context, in: outboxDirectory).release()
            else { throw error }
            return try open()
        }
    }

    private func hasOurTables(_ database: Database) throws(SQLiteError) -> Bool {
        try database.integer("SELECT count(*) FROM sqlite_schema WHERE name IN ('outbox', 'items', 'payloads')") == 3
    }
}
