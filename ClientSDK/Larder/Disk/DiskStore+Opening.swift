import LarderSQLite
import Synchronization

extension DiskStore {
    /// The connection that writes, opened if it is not.
    ///
    /// - Parameter isRecovering: whether this process has just replaced a damaged file by what could be saved of it.
    func connectedWriter(_ state: inout WriterState, isRecovering: Bool = false) throws -> DiskConnection {
        if state.isErased { throw Self.erased }
        if let connection = state.connection { return connection }
        if !state.wasOpen {
            try context.files.makeDirectory(context.configuration.directory)
        } else if !context.files.exists(context.configuration.directory) {
            throw DiskError(
                .cannotOpen,
                "The directory \(context.configuration.directory) has vanished. Open the store anew if it is still wanted."
            )
        }
        var isRecovered = isRecovering
        let connection = try context.files.locked(context.pathOfLock) {
            try DiskReplacement(context).finishInterrupted()
            let size = context.files.size(context.path)
            // SQLite too takes a file of one byte for an empty one.
            if (size ?? 0) <= 1 {
                try DiskReplacement(context).startAnew(hasVanished: state.wasOpen || size != nil)
                isRecovered = true
            }
            do {
                return try open(generation: state.generation)
            } catch let error as SQLiteError where error.isDamage {
                try DiskReplacement(context).replace(because: error)
                isRecovered = true
                return try open(generation: state.generation)
            }
        }
        // What others did while it was not open is not known. What was lost here, memory may still have.
        if state.wasOpen, !isRecovered { context.others.note() }
        state.connection = connection
        state.wasOpen = true
        isPrepared.store(true, ordering: .releasing)
        return connection
    }

    /// Replaces the file, or finds that another process has done so.
    func recover(_ state: inout WriterState, _ cause: SQLiteError) throws {
        if state.isErased { throw Self.erased }
        let known = state.connection
        let isReplacedAlready = known?.database.hasMoved ?? false || !context.files.exists(context.path)
        // A file that cannot be opened (there are too many open) is not damaged by that.
        guard isReplacedAlready || cause.isDamage else { throw DiskError(cause) }
        giveUpConnections(&state)
        if !isReplacedAlready {
            try context.files.locked(context.pathOfLock) {
                // Who waited for the lock may find the work done.
                if let known, known.database.hasMoved { return }
                try DiskReplacement(context).replace(because: cause)
            }
        }
        _ = try connectedWriter(&state, isRecovering: !isReplacedAlready)
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
        return connection
    }

    private func hasOurTables(_ database: Database) throws(SQLiteError) -> Bool {
        try database.integer("SELECT count(*) FROM sqlite_schema WHERE name IN ('outbox', 'items', 'payloads')") == 3
    }
}
