import CSQLite

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// A connection to a SQLite database.
///
/// Not safe for concurrent use and not `Sendable`: its owner keeps it inside a `Mutex` or an actor. It is closed when the last
/// reference to it or to one of its statements is released.
///
/// `@safe`: the handle is valid from `init` to `deinit` and never leaves this module.
@safe package final class Database {
    /// Where a database lives.
    package enum Location: Sendable {
        case memory
        /// In memory, beginning as a copy of an image; it may grow by 1 GiB.
        case image(DatabaseImage)
        /// A file, made with mode 0600 if it is not there.
        case file(String)
    }

    /// When a commit counts as done (SQLite's `synchronous`).
    package enum Durability: Sendable, Hashable {
        /// Survives the death of the process.
        case normal
        /// Survives the loss of power too.
        case full
    }

    package struct Options: Sendable, Hashable {
        package var durability: Durability = .full
        /// How long to wait for another connection's lock, in milliseconds.
        package var busyTimeoutMilliseconds: Int32 = 5_000
        /// The most memory for cached pages, in KiB.
        package var pageCacheKibibytes: Int32 = 8_192
        /// How many pages the log may have before they are copied into the file. The commit that reaches it does so.
        ///
        /// 64 MiB: copying the log into the file waits for the disk, and every commit behind it waits too.
        package var checkpointPages: Int32 = 16_384
        /// Whether the file is made if it is not there.
        package var creates = true
        /// Whether a new file can give pages back (`auto_vacuum = INCREMENTAL`). It cannot be changed later.
        package var reclaimsPages = false
        /// Whether the connection refuses to change anything.
        package var readsOnly = false

        package init() {}
    }

    private let handle: OpaquePointer
    /// What the database lies in, where it began as an image. Released after the handle is closed.
    private var mapping: DatabaseImage.Mapping?
    /// What this connection was opened on, for messages.
    package let location: Location
    /// What goes wrong, in tests. Released after the handle is closed.
    let faults: FaultPlan?

    /// Opens a database, and makes it if it is not there.
    ///
    /// - Parameter faults: in tests, what goes wrong with the file.
    /// - Throws: `.cannotOpen`, `.readOnly`, `.full`, `.notADatabase`, `.corrupt`, or `.busy` after the timeout.
    package init(
        _ location: Location,
        _ options: Options = Options(),
        faults: FaultPlan? = nil
    ) throws(SQLiteError) {
        self.location = location
        self.faults = faults
        let path: String
        switch location {
        case .memory, .image: path = ":memory:"
        case .file(let file):
            path = file
            if options.creates { try Self.createPrivately(file, faults) }
        }
        var opened: OpaquePointer?
        let creation = options.creates ? SQLITE_OPEN_CREATE : 0
        let flags = SQLITE_OPEN_READWRITE | creation | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
        let result = unsafe sqlite3_open_v2(path, &opened, flags, faults?.fileSystemName)
        guard result == SQLITE_OK, let opened = unsafe opened else {
            let error = unsafe SQLiteError(opened)
            unsafe sqlite3_close_v2(opened)
            throw error
        }
        unsafe handle = opened
        if case .image(let image) = location { try load(image) }
        unsafe sqlite3_busy_timeout(handle, options.busyTimeoutMilliseconds)
        try execute("PRAGMA foreign_keys = ON")
        try execute("PRAGMA trusted_schema = OFF")
        try run("PRAGMA cache_size = -\(options.pageCacheKibibytes)")
        // Before the log: it writes the first page, and after that the file cannot learn it any more.
        if options.reclaimsPages { try execute("PRAGMA auto_vacuum = INCREMENTAL") }
        switch location {
        case .memory, .image:
            // Nobody else can have it: a read need not begin and end with a lock.
            try execute("PRAGMA locking_mode = EXCLUSIVE")
            try execute("PRAGMA journal_mode = MEMORY")
            try execute("PRAGMA synchronous = OFF")
        case .file:
            try execute("PRAGMA journal_mode = WAL")
            try run("PRAGMA wal_autocheckpoint = \(options.checkpointPages)")
            try execute(options.durability == .full ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL")
        }
        try execute("PRAGMA temp_store = MEMORY")
        if options.readsOnly { try execute("PRAGMA query_only = ON") }
    }

    private func load(_ image: DatabaseImage) throws(SQLiteError) {
        guard let mapping = image.map() else {
            throw SQLiteError(code: .cannotOpen, message: "there is no address space for another database in memory")
        }
        let bytes = unsafe mapping.start.assumingMemoryBound(to: UInt8.self)
        let (size, room) = (Int64(image.byteCount), Int64(mapping.length))
        let result = unsafe sqlite3_deserialize(handle, "main", bytes, size, room, 0)
        guard result == SQLITE_OK else { throw unsafe SQLiteError(handle) }
        self.mapping = mapping
        // Pages are read where they lie.
        try execute("PRAGMA mmap_size = 2147418112")
    }

    /// For this module's other files.
    var connection: OpaquePointer { unsafe handle }

    deinit {
        // Statements hold a reference to this object, so none can be left here.
        unsafe sqlite3_close_v2(handle)
    }

    /// SQLite makes the journal files with the database's own mode, so the database is made with it before SQLite looks.
    private static func createPrivately(_ path: String, _ faults: FaultPlan?) throws(SQLiteError) {
        var status = stat()
        if unsafe stat(path, &status) == 0 {
            // Not opened: to close any descriptor of a file drops all locks that this process has on it (POSIX), those of
            // another connection too.
            if status.st_mode & S_IFMT == S_IFREG, status.st_mode & 0o777 != 0o600 { unsafe chmod(path, 0o600) }
            return
        }
        if let faults, try faults.step() { throw FaultPlan.error(SQLITE_IOERR) }
        let descriptor = unsafe open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            let number = errno
            if number == EEXIST { return }
            let reason = unsafe String(cString: strerror(number))
            let code: SQLiteError.Code =
                switch number {
                case EACCES, EPERM, EROFS: .readOnly
                case ENOSPC, EDQUOT: .full
                default: .cannotOpen
                }
            throw SQLiteError(code: code, message: "\(path): \(reason)")
        }
        fchmod(descriptor, 0o600)
        close(descriptor)
    }

    /// Whether there is a file of that name.
    package static func fileExists(_ path: String) -> Bool { unsafe access(path, F_OK) == 0 }

    // MARK: Statements

    /// Runs one or more statements that take no values and whose rows are not wanted.
    package func execute(_ sql: StaticString) throws(SQLiteError) { try run(sql.description) }

    /// For the few statements whose text must be made up, because SQLite binds no values there. Never with foreign text.
    private func run(_ sql: String) throws(SQLiteError) {
        try faults?.begins(readsOnly: sql.hasPrefix("PRAGMA"))
        let result = unsafe sqlite3_exec(handle, sql, nil, nil, nil)
        guard result == SQLITE_OK else { throw unsafe SQLiteError(handle, sql: sql) }
    }

    /// A statement to be kept and used often. It is compiled when it is first used, and what is wrong with it is thrown then.
    package func prepare(_ sql: StaticString) throws(SQLiteError) -> Statement { Statement(sql, of: self) }

    func compile(_ sql: StaticString) throws(SQLiteError) -> OpaquePointer {
        var statement: OpaquePointer?
        let flags = UInt32(SQLITE_PREPARE_PERSISTENT)
        let result = unsafe sqlite3_prepare_v3(handle, sql.description, -1, flags, &statement, nil)
        guard result == SQLITE_OK, let statement = unsafe statement else {
            throw unsafe SQLiteError(handle, sql: sql.description)
        }
        return unsafe statement
    }

    // MARK: Transactions

    /// How a transaction begins.
    package enum TransactionKind {
        /// Locks when it first reads or writes.
        case deferred
        /// Takes the write lock at once, so that it cannot fail half-way for want of it.
        case immediate
    }

    /// Runs `body` in a transaction: committed when it returns, rolled back when it throws. Inside another it is a savepoint.
    package func transaction<Result, Failure: Error>(
        _ kind: TransactionKind = .immediate,
        _ body: () throws(Failure) -> Result
    ) throws -> Result {
        guard unsafe sqlite3_get_autocommit(handle) != 0 else { return try savepoint(body) }
        try execute(kind == .immediate ? "BEGIN IMMEDIATE" : "BEGIN DEFERRED")
        do {
            let result = try body()
            try execute("COMMIT")
            return result
        } catch {
            rollback()
            throw error
        }
    }

    /// Begins a transaction that spans several `transaction` calls, each of which is a savepoint in it. Ended by `commit` or
    /// `rollBack`.
    package func begin() throws(SQLiteError) { try execute("BEGIN IMMEDIATE") }

    /// Commits what `begin` began. When that fails, nothing of it has happened.
    package func commit() throws(SQLiteError) {
        do {
            try execute("COMMIT")
        } catch {
            rollback()
            throw error
        }
    }

    /// Undoes everything since `begin`.
    package func rollBack() { rollback() }

    private func savepoint<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws -> Result {
        try execute("SAVEPOINT nested")
        do {
            let result = try body()
            try execute("RELEASE nested")
            return result
        } catch {
            // Where the whole transaction is gone already (disk full), there is no savepoint left to roll back to.
            if unsafe sqlite3_get_autocommit(handle) == 0 {
                unsafe sqlite3_exec(handle, "ROLLBACK TO nested; RELEASE nested", nil, nil, nil)
            }
            throw error
        }
    }

    private func rollback() {
        // SQLite rolls back by itself after some errors; then there is no transaction any more and nothing left to do.
        if unsafe sqlite3_get_autocommit(handle) == 0 { unsafe sqlite3_exec(handle, "ROLLBACK", nil, nil, nil) }
    }

    // MARK: Facts

    /// Whether a transaction is open.
    package var isInTransaction: Bool { unsafe sqlite3_get_autocommit(handle) == 0 }

    /// Whether the file that was opened is not any more what its path names: it was renamed, replaced or deleted.
    package var hasMoved: Bool {
        var result: Int32 = 0
        let answer = unsafe sqlite3_file_control(handle, "main", SQLITE_FCNTL_HAS_MOVED, &result)
        return answer == SQLITE_OK && result != 0
    }

    /// Has a commit survive the loss of power too, or only the death of the process; from the next transaction on.
    package func setDurability(_ durability: Durability) throws(SQLiteError) {
        try execute(durability == .full ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL")
    }

    /// Copies the log into the file and empties it; false where readers or writers were in the way.
    package func checkpoint() throws(SQLiteError) -> Bool { try integer("PRAGMA wal_checkpoint(TRUNCATE)") == 0 }

    /// The row that was inserted last.
    package var lastInsertRowID: Int64 { unsafe sqlite3_last_insert_rowid(handle) }

    /// How many rows the last statement inserted, changed or deleted.
    package var changes: Int { Int(unsafe sqlite3_changes64(handle)) }

    /// How many rows were inserted, changed or deleted since the connection was opened.
    package var changesTotal: Int64 { unsafe sqlite3_total_changes64(handle) }

    /// A value that one statement gives, such as a pragma's.
    package func integer(_ sql: StaticString) throws(SQLiteError) -> Int64 {
        let statement = try prepare(sql)
        defer { statement.reset() }
        guard try statement.step() else {
            throw SQLiteError(code: .error, message: "the statement gave no row", sql: sql.description)
        }
        return statement.int64(0)
    }

    /// The application's own number of the schema, in the file's header.
    package func setUserVersion(_ version: Int32) throws(SQLiteError) { try run("PRAGMA user_version = \(version)") }

    /// The number by which tools know whose file it is.
    package func setApplicationID(_ id: Int32) throws(SQLiteError) { try run("PRAGMA application_id = \(id)") }

    /// What is wrong with the file's structure; empty if nothing is. Cost: it reads everything.
    package func integrityProblems() throws(SQLiteError) -> [String] {
        let statement = try prepare("PRAGMA integrity_check(20)")
        defer { statement.reset() }
        var problems: [String] = []
        while try statement.step() { problems.append(statement.text(0)) }
        return problems == ["ok"] ? [] : problems
    }

    func error(_ sql: StaticString) -> SQLiteError { unsafe SQLiteError(handle, sql: sql.description) }
}
