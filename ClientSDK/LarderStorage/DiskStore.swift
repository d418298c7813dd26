import LarderSQLite
import Synchronization

/// A store of entities, lists, generic records, metadata and change tokens in SQLite, with large payloads in files.
///
/// Safe from any thread, and several processes may open one store. Calls block on the disk: a read takes some microseconds and
/// never waits for a writer, a write waits for earlier writers. A damaged database is set aside and rebuilt by the first call that
/// finds the damage, which is then repeated; `Configuration.onEvent` is called. `DiskStore.Recovery` describes the guarantees for
/// each kind of damage.
public final class DiskStore: Sendable {
    struct WriterState {
        var connection: DiskConnection?
        /// The number of times that connections were closed because the file was replaced.
        var generation = 0
        var isErased = false
        /// Whether the store was open before, so that a missing file has vanished.
        var wasOpen = false
        /// The blob folders that are still to be searched for unknown files; nil before the first search.
        var foldersToSweep: [String]?
        /// This process's copy of the outbox.
        var outbox = DiskOutboxCopy()
        /// Whether the reserve was missing at the last check.
        var lacksReserve = false
    }

    private struct ReaderState {
        var idle: [DiskConnection] = []
        var generation = 0
        var isErased = false
    }

    /// The settings of the store.
    public var configuration: Configuration { context.configuration }

    package let context: DiskContext
    /// Locked during writes; locked before `readers`.
    let writer = Mutex(WriterState())
    private let readers = Mutex(ReaderState())
    /// Whether the file's schema has been migrated.
    let isPrepared = Atomic<Bool>(false)
    /// The store of the outbox (`outboxStore()`), once it was opened.
    let outboxStoreOpened = Mutex<DiskStore?>(nil)
    private static let idleReadersMaximum = 4

    /// Opens a store, creating it if needed. Cost: some milliseconds, however much is stored.
    ///
    /// - Throws: `.cannotOpen`, `.readOnly`, `.full`, `.busy`, `.newerSchema` or `.foreignFile`. Damage is repaired and reported.
    public init(_ configuration: Configuration) throws(DiskError) {
        context = DiskContext(configuration)
        defer { context.deliver() }
        guard !configuration.opensLate else { return }
        do { try prepare() } catch { throw DiskError(error) }
    }

    /// Migrates the file once, because readers change nothing.
    private func prepare() throws {
        guard !isPrepared.load(ordering: .acquiring) else { return }
        do {
            try writer.withLock { state in _ = try connectedWriter(&state) }
        } catch let error as SQLiteError where error.code == .readOnly {
            throw DiskError(
                .readOnly,
                "The store in \(context.configuration.directory) cannot be opened: it needs write access, also to read, because SQLite keeps "
                    + "a log and locks beside the database. Give this process write access to the directory and its files, or open a "
                    + "cache without a directory, which is in memory only. (\(error.message))",
                cause: error
            )
        }
    }

    // MARK: Reading

    /// Reads several items in one snapshot.
    ///
    /// - Parameter body: may be called a second time, after a damaged database was rebuilt.
    /// - Throws: `DiskError`, or what `body` throws.
    public func read<Result>(_ body: (borrowing ReadTransaction) throws -> Result) throws -> Result {
        defer { context.deliver() }
        return try withReader { connection in
            try connection.perform { try connection.run(.begin) }
            do {
                let transaction = ReadTransaction(connection: connection)
                let result = try body(transaction)
                try connection.perform { try connection.run(.commit) }
                return result
            } catch {
                connection.database.rollBack()
                throw error
            }
        }
    }

    /// Runs a single read statement, which by itself sees one snapshot.
    func readOnce<Result>(_ body: (DiskConnection) throws -> Result) throws(DiskError) -> Result {
        defer { context.deliver() }
        do {
            return try withReader { connection in
                connection.hasMissedFile = false
                let result = try connection.perform { try body(connection) }
                // The row may have been replaced and its file removed between the two reads.
                return connection.hasMissedFile ? try connection.perform { try body(connection) } : result
            }
        } catch {
            throw DiskError(error)
        }
    }

    private func withReader<Result>(_ body: (DiskConnection) throws -> Result) throws -> Result {
        try prepare()
        switch try attempt(body) {
        case .success(let result): return result
        case .failure(let failure):
            try writer.withLock { state in
                // Otherwise another call has already done it.
                if state.generation == failure.generation { try recover(&state, failure.cause) }
            }
        }
        switch try attempt(body) {
        case .success(let result): return result
        case .failure(let failure): throw DiskError(failure.cause)
        }
    }

    /// The reason why a read must be repeated with another file.
    private struct Unreadable: Error {
        let cause: SQLiteError
        let generation: Int
    }

    /// Reads once. The connection is not kept afterwards, unless it is in the pool.
    private func attempt<Result>(
        _ body: (DiskConnection) throws -> Result
    ) throws -> Swift.Result<Result, Unreadable> {
        let (generation, idle) = try readers.withLock { state in
            if state.isErased { throw Self.erased }
            return (state.generation, state.idle.popLast())
        }
        var reader = idle
        do {
            let connection = try idle ?? openReader(generation)
            reader = connection
            let result = try body(connection)
            if let damage = connection.damage { throw DiskError(damage) }
            giveBack(connection)
            return .success(result)
        } catch {
            if let cause = replaceableFailure(error, reader) {
                return .failure(Unreadable(cause: cause, generation: generation))
            }
            if let reader { giveBack(reader) }
            if let failure = error as? SQLiteError { throw DiskError(failure) }
            throw error
        }
    }

    /// The error that requires another file: damage, or a missing file.
    private func replaceableFailure(_ error: any Error, _ reader: DiskConnection?) -> SQLiteError? {
        if let reader { return reader.damage }
        guard let failure = error as? SQLiteError ?? ((error as? DiskError)?.cause as? SQLiteError) else { return nil }
        return failure.isDamage || failure.code == .cannotOpen ? failure : nil
    }

    private func openReader(_ generation: Int) throws -> DiskConnection {
        // While the lock is held, no other process replaces the file.
        try context.files.locked(context.pathOfLock, isShared: true, makes: false) {
            let database = try Database(
                .file(context.path),
                context.options(readsOnly: true),
                faults: context.files.faults
            )
            return DiskConnection(database, context, generation: generation)
        }
    }

    private func giveBack(_ connection: DiskConnection) {
        readers.withLock { state in
            if state.generation == connection.generation, !state.isErased, state.idle.count < Self.idleReadersMaximum {
                state.idle.append(connection)
            }
        }
    }

    // MARK: Writing

    /// Changes several items in one transaction: all of it is stored when this returns, and nothing if it throws.
    ///
    /// - Parameters:
    ///   - durability: the failures that the commit survives.
    ///   - body: must change nothing but the transaction. Another write to this store from within it is a programming error, and
    ///     traps. It may be called a second time, after a damaged database was rebuilt. If it catches an error of the disk, the
    ///     transaction is not committed either.
    /// - Throws: `DiskError`, or what `body` throws.
    public func write<Result: Sendable>(
        _ durability: Durability = .processDeath,
        _ body: (borrowing WriteTransaction) throws -> Result
    ) throws -> Result {
        try write(durability, mayUseReserve: false, body)
    }

    /// Changes several items in one transaction, using the reserved space if the disk is full.
    ///
    /// - Parameter mayUseReserve: whether the write is needed for sending. Cached content is evicted for it too, and `body` is
    ///   called again.
    package func write<Result: Sendable>(
        _ durability: Durability = .processDeath,
        mayUseReserve: Bool,
        _ body: (borrowing WriteTransaction) throws -> Result
    ) throws -> Result {
        defer { context.deliver() }
        return try writer.withLock { state in
            guard mayUseReserve else {
                let result = Swift.Result { () throws -> Result in
                    try keepReserve(&state)
                    return try commit(&state, durability, body)
                }
                guard case .failure(let error) = result, Self.isFull(error),
                    let content = context.configuration.content()
                else { return try result.get() }
                // A change of the user: the logs of both stores are emptied for it.
                try checkpointIfPossible(&state)
                try content.emptyLogForOutbox()
                try keepReserve(&state)
                return try commit(&state, durability, body)
            }
            try restoreReserve(&state)
            while true {
                do {
                    return try commit(&state, durability, body)
                } catch  where Self.isFull(error) {
                    guard try makeRoom(&state) else { throw error }
                }
            }
        }
    }

    /// Runs a transaction, and applies its outbox changes to the copy.
    func commit<Result: Sendable>(
        _ state: inout WriterState,
        _ durability: Durability,
        _ body: (borrowing WriteTransaction) throws -> Result
    ) throws -> Result {
        let result = try withWriter(&state) { connection in try transact(connection, durability, body) }
        // The changes of this transaction: each begins with none.
        if let connection = state.connection { state.outbox.apply(connection.outboxChanges) }
        return result
    }

    /// Uses the writing connection, and repeats the work with a new one if the file was replaced or damaged.
    func withWriter<Result>(
        _ state: inout WriterState,
        _ body: (DiskConnection) throws -> Result
    ) throws -> Result {
        var lost: DiskConnection?
        var isSecond = false
        while true {
            let connection = try connectedWriter(&state, lost: lost)
            lost = nil
            do {
                return try body(connection)
            } catch let error as FileMoved {
                guard !isSecond else {
                    throw DiskError(
                        .cannotOpen,
                        "The store was replaced twice during one call. Try again.",
                        cause: error
                    )
                }
                isSecond = true
                lost = connection
                giveUpConnections(&state)
            } catch {
                guard !isSecond, let damage = connection.damage else { throw error }
                isSecond = true
                try recover(&state, damage)
            }
        }
    }

    /// The connection's file was renamed or unlinked.
    struct FileMoved: Error {}

    private func transact<Result>(
        _ connection: DiskConnection,
        _ durability: Durability,
        _ body: (borrowing WriteTransaction) throws -> Result
    ) throws -> Result {
        let deferred = try begin(connection, durability)
        do {
            try prepare(connection, deferred)
            // Named: Swift 6.3.1 crashes when it specialises a call with a noncopyable temporary (release builds).
            let transaction = WriteTransaction(connection: connection)
            let result = try body(transaction)
            try commit(connection)
            return result
        } catch {
            undo(connection, deferred)
            throw error
        }
    }

    private typealias DeferredWrites = (stamps: [(Int64, Int64)], damaged: [(Int64, DiskContext.Damage)])

    private func begin(_ connection: DiskConnection, _ durability: Durability) throws -> DeferredWrites {
        connection.failure = nil
        try connection.perform {
            if connection.durability != durability {
                try connection.database.setDurability(durability == .powerLoss ? .full : .normal)
                connection.durability = durability
            }
            try connection.run(.beginWriting)
            try connection.checkForeignCommits()
        }
        connection.isWriting = true
        connection.createdBlobs = []
        connection.outboxChanges = []
        return context.takeDeferredWrites(256)
    }

    private func prepare(_ connection: DiskConnection, _ deferred: DeferredWrites) throws {
        // Checked with the write lock held: a replacing process takes that lock first, if the file can still be locked.
        if connection.database.hasMoved { throw FileMoved() }
        if let problem = connection.problem { try connection.perform { throw problem } }
        // Before the body, which may store rows equal, down to the checksum, to damaged ones.
        try connection.perform { try connection.performDeferredWrites(deferred) }
    }

    private func commit(_ connection: DiskConnection) throws {
        let evicted = try connection.perform {
            if let damage = connection.damage { throw damage }
            let evicted = try connection.enforceBudget()
            if connection.durability == .powerLoss { try context.blobs.sync(connection.createdBlobs) }
            try connection.run(.commit)
            return evicted
        }
        connection.isWriting = false
        finish(connection, evicted)
    }

    private func undo(_ connection: DiskConnection, _ deferred: DeferredWrites) {
        // Before the lock is released: afterwards other processes may rely on them.
        for name in connection.createdBlobs {
            do { try context.blobs.remove(name) } catch { context.post(.cleaningFailed(DiskError(error))) }
        }
        connection.database.rollBack()
        connection.isWriting = false
        connection.failure = nil
        context.giveBack(deferred.damaged)
    }

    /// The work after a commit. It cannot fail the call: the transaction is stored.
    private func finish(_ connection: DiskConnection, _ evicted: Int) {
        if evicted > 0 { context.post(.evicted(count: evicted)) }
        do {
            _ = try connection.perform { try connection.removeUnusedBlobs(64) }
        } catch {
            // Retried by maintenance.
            context.post(.cleaningFailed(error))
        }
    }

    // MARK: Connections

    static var erased: DiskError {
        DiskError(.erased, "The store was erased. Open a new store for the account that is signed in now.")
    }

    /// Closes all connections; those in use are closed when they are returned. Requires the writer's state.
    func giveUpConnections(_ state: inout WriterState) {
        state.connection = nil
        state.generation += 1
        context.dropDeferredWrites()
        let (generation, isErased) = (state.generation, state.isErased)
        let idle = readers.withLock { readers in
            readers.generation = generation
            readers.isErased = isErased
            defer { readers.idle = [] }
            return readers.idle
        }
        _ = consume idle
    }

    /// Checks whether another process has committed, unless this process is writing and finds out by itself.
    ///
    /// Cost: some microseconds.
    /// - Throws: if the store cannot be opened or read.
    package func checkForeignCommits() throws(DiskError) {
        defer { context.deliver() }
        do {
            _ = try writer.withLockIfAvailable { state in
                let connection = try connectedWriter(&state)
                try connection.perform { try connection.checkForeignCommits() }
            }
        } catch {
            throw DiskError(error)
        }
    }

    /// Releases all files and locks until the next call, as before the process is suspended.
    ///
    /// A running read keeps its own until it ends.
    public func suspend() {
        openedOutboxStore?.suspend()
        writer.withLock { state in giveUpConnections(&state) }
    }
}
