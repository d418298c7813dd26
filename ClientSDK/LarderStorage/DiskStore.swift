import Glibc
import LarderSQLite
import Synchronization

/// A store of entities, lists, records, metadata and change tokens in SQLite.
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
    }

    struct ReaderState {
        var idle: [DiskConnection] = []
        var generation = 0
        var isErased = false
    }

    /// The settings of the store.
    public var configuration: Configuration { context.configuration }

    package let context: DiskContext
    /// Locked during writes; locked before `readers`.
    let writer = Mutex(WriterState())
    let readers = Mutex(ReaderState())
    /// Whether the file's schema has been migrated.
    let isPrepared = Atomic<Bool>(false)
    /// The connection of a store in memory, with the thread whose transaction uses it.
    let writing = Mutex<(thread: pthread_t, connection: DiskConnection)?>(nil)
    /// The store of the outbox (`outboxStore()`), once it was opened.
    let outboxStoreOpened = Mutex<DiskStore?>(nil)
    static let idleReadersMaximum = 4

    /// Opens a store, creating it if needed. Cost: some milliseconds, however much is stored.
    ///
    /// - Throws: `.cannotOpen`, `.readOnly`, `.full`, `.busy`, `.newerSchema` or `.foreignFile`. Damage is repaired and reported.
    public init(_ configuration: Configuration) throws(DiskError) {
        context = DiskContext(configuration)
        defer { context.deliver() }
        guard !configuration.opensLate else {
            if !configuration.isInMemory { context.identify() }
            return
        }
        try prepare()
    }

    /// Migrates the file once, because readers change nothing.
    func prepare() throws(DiskError) {
        guard !isPrepared.load(ordering: .acquiring) else { return }
        do {
            try writer.withLock { state in _ = try connectedWriter(&state) }
        } catch {
            let error = DiskError(error)
            guard error.code == .readOnly else { throw error }
            throw DiskError(
                .readOnly,
                "The store in \(context.configuration.directory) cannot be opened: it needs write access, also to read, because SQLite keeps "
                    + "a log and locks beside the database. Give this process write access to the directory and its files, or open a "
                    + "cache without a directory, which is in memory only. (\(error))",
                cause: error.cause
            )
        }
    }

    // MARK: Connections

    static var erased: DiskError {
        DiskError(.erased, "The store was erased. Open a new store for the account that is signed in now.")
    }

    /// Closes all connections; those in use are closed when they are returned. Requires the writer's state.
    func giveUpConnections(_ state: inout WriterState) {
        state.connection = nil
        context.dropDeferredWrites()
        closeReaders(&state)
    }

    /// Closes all reading connections; those in use are closed when they are returned.
    func closeReaders(_ state: inout WriterState) {
        state.generation += 1
        let (generation, isErased) = (state.generation, state.isErased)
        let idle = readers.withLock { readers in
            readers.generation = generation
            readers.isErased = isErased
            defer { readers.idle = [] }
            return readers.idle
        }
        _ = consume idle
    }

    /// Checks whether another process has committed or replaced the file, unless this process is writing and finds out by itself.
    ///
    /// Cost: some microseconds.
    /// - Throws: if the store cannot be opened or read.
    package func checkForeignCommits() throws(DiskError) {
        defer { context.deliver() }
        do {
            _ = try writer.withLockIfAvailable { state in
                try withWriter(&state) { connection in
                    try connection.checkForeignCommits()
                    // Without another file, what was stored can still be read.
                    if connection.database.hasMoved, context.files.exists(context.path), !context.isReplaced {
                        throw FileMoved()
                    }
                }
            }
        } catch {
            throw DiskError(error)
        }
    }

    /// Uses the writer's state, and then delivers the events.
    func changing<Result: Sendable>(_ body: (inout WriterState) throws -> Result) throws(DiskError) -> Result {
        defer { context.deliver() }
        do { return try writer.withLock { state in try body(&state) } } catch { throw DiskError(error) }
    }

    /// Uses the writing connection outside of a transaction.
    func withConnection<Result: Sendable>(_ body: (DiskConnection) throws -> Result) throws(DiskError) -> Result {
        try changing { state in
            let connection = try connectedWriter(&state)
            return try connection.perform { try body(connection) }
        }
    }

    /// Releases all locks and databases until the next call, as before the process is suspended.
    ///
    /// A running read keeps its own until it ends. An empty file, which nobody can lock through it, stays open: by it the store finds out
    /// whether it was erased meanwhile.
    public func suspend() {
        guard !context.configuration.isInMemory else { return }
        openedOutboxStore?.suspend()
        writer.withLock { state in giveUpConnections(&state) }
    }
}
