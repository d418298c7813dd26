import CSQLite
import Glibc

/// A connection to a SQLite database.
///
/// Not safe for concurrent use and not `Sendable`: its owner keeps it inside a `Mutex` or an actor. It is closed when the last
/// reference to it or to one of its statements is released.
///
/// `@safe`: the handle is valid from `init` to `deinit` and never leaves this module.
@safe package final class Database {
    package enum Location: Sendable {
        case memory
        /// In memory, starting as a copy of an image; it may grow by 1 GiB.
        case image(DatabaseImage)
        /// A file, created with mode 0600 if it does not exist.
        case file(String)
    }

    /// When a commit counts as durable (SQLite's `synchronous`).
    package enum Durability: Sendable, Hashable {
        /// Survives the death of the process.
        case normal
        /// Survives power loss.
        case full
    }

    package struct Options: Sendable, Hashable {
        package var durability: Durability = .full
        /// The time limit for another connection's lock, in milliseconds.
        package var busyTimeoutMilliseconds: Int32 = 5_000
        /// The size of the page cache, in KiB.
        package var pageCacheKibibytes: Int32 = 8_192
        /// The size of the write-ahead log in pages at which a commit copies it into the file.
        ///
        /// 64 MiB: copying the log into the file waits for the disk, and so do the following commits.
        package var checkpointPages: Int32 = 16_384
        /// Whether the file is created if it does not exist.
        package var creates = true
        /// Whether a new file can release pages (`auto_vacuum = INCREMENTAL`). It cannot be changed later.
        package var reclaimsPages = false
        /// Whether the connection is read-only.
        package var readsOnly = false

        package init() {}
    }

    private let handle: OpaquePointer
    /// The memory of a database that started as an image. Released after the handle is closed.
    private var mapping: DatabaseImage.Mapping?
    /// The opened location, for messages.
    package let location: Location
    /// The injected faults, in tests. Released after the handle is closed.
    let faults: (any DiskFaults)?

    /// Opens a database, and creates it if it does not exist.
    ///
    /// - Parameter faults: in tests, the faults of the file.
    /// - Throws: `.cannotOpen`, `.readOnly`, `.full`, `.notADatabase`, `.corrupt`, or `.busy` after the timeout.
    package init(
        _ location: Location,
        _ options: Options = Options(),
        faults: (any DiskFaults)? = nil
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
        // Before the log is enabled: that writes the first page, after which the setting cannot change.
        if options.reclaimsPages { try execute("PRAGMA auto_vacuum = INCREMENTAL") }
        switch location {
        case .memory, .image:
            // No other connection is possible, so a read need not lock.
            try execute("PRAGMA locking_mode = EXCLUSIVE")
            try execute("PRAGMA journal_mode = MEMORY")
            try execute("PRAGMA synchronous = OFF")
        case .file:
            try execute("PRAGMA journal_mode = WAL")
            try run("PRAGMA wal_autocheckpoint = \(options.checkpointPages)")
            try execute(options.durability == .full ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL")
        }
        try execute("PRAGMA temp_store = MEMORY")
        // Damage can make any page number: of those above the default limit, SQLite would say that the disk is full.
        try execute("PRAGMA max_page_count = 4294967294")
        if options.readsOnly { try execute("PRAGMA query_only = ON") }
    }

    private func load(_ image: DatabaseImage) throws(SQLiteError) {
        guard let mapping = image.map() else {
            throw SQLiteError(code: .cannotOpen, message: "not enough address space for an in-memory database")
        }
        let bytes = unsafe mapping.start.assumingMemoryBound(to: UInt8.self)
        let (size, room) = (Int64(image.byteCount), Int64(mapping.length))
        let result = unsafe sqlite3_deserialize(handle, "main", bytes, size, room, 0)
        guard result == SQLITE_OK else { throw unsafe SQLiteError(handle) }
        self.mapping = mapping
        // Pages are read in place.
        try execute("PRAGMA mmap_size = 2147418112")
    }

    /// For the other files of this module.
    var connection: OpaquePointer { unsafe handle }

    deinit {
        // Statements hold a reference to this object, so none can be left here.
        unsafe sqlite3_close_v2(handle)
    }

    /// SQLite gives journal files the database's mode, so the file is created with it first.
    private static func createPrivately(_ path: String, _ faults: (any DiskFaults)?) throws(SQLiteError) {
        var status = stat()
        if unsafe stat(path, &status) == 0 {
            // The file is not opened: closing any descriptor of it would release all locks that this process has on it (POSIX),
            // including those of other connections.
            if status.st_mode & S_IFMT == S_IFREG, status.st_mode & 0o777 != 0o600 { unsafe chmod(path, 0o600) }
            return
        }
        if let faults, try faults.step() { throw SQLiteError(code: .inputOutput, message: "a planned fault") }
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

    package static func fileExists(_ path: String) -> Bool { unsafe access(path, F_OK) == 0 }

    // MARK: Statements

    /// Executes one or more statements without values and without result rows.
    package func execute(_ sql: StaticString) throws(SQLiteError) { try run(sql.description) }

    /// For the few statements whose text must be generated, because SQLite binds no values there. Never use it with external
    /// text.
    private func run(_ sql: String) throws(SQLiteError) {
        try faults?.begins(readsOnly: sql.hasPrefix("PRAGMA"))
        let result = unsafe sqlite3_exec(handle, sql, nil, nil, nil)
        guard result == SQLITE_OK else { throw unsafe SQLiteError(handle, sql: sql) }
    }

    /// A statement for repeated use. It is compiled on first use, which throws its errors.
    package func prepare(_ sql: SQLText) throws(SQLiteError) -> Statement { Statement(sql, of: self) }

    func compile(_ sql: SQLText) throws(SQLiteError) -> OpaquePointer {
        var statement: OpaquePointer?
        let flags = UInt32(SQLITE_PREPARE_PERSISTENT)
        let result = unsafe sqlite3_prepare_v3(handle, sql.description, -1, flags, &statement, nil)
        guard result == SQLITE_OK, let statement = unsafe statement else {
            throw unsafe SQLiteError(handle, sql: sql.description)
        }
        return unsafe statement
    }

    // MARK: Transactions

    /// Runs `body` in a transaction: committed when it returns, rolled back when it throws. Inside another it is a savepoint.
    ///
    /// It takes the write lock at its beginning, so that it cannot fail half-way for lack of it.
    package func transaction<Result, Failure: Error>(
        _ body: () throws(Failure) -> Result
    ) throws -> Result {
        guard unsafe sqlite3_get_autocommit(handle) != 0 else { return try savepoint(body) }
        try execute("BEGIN IMMEDIATE")
        do {
            let result = try body()
            try execute("COMMIT")
            return result
        } catch {
            rollBack()
            throw error
        }
    }

    /// Begins a transaction that spans several `transaction` calls, each of which is a savepoint in it. Ended by `commit` or
    /// `rollBack`.
    package func begin() throws(SQLiteError) { try execute("BEGIN IMMEDIATE") }

    /// Commits what `begin` began. If that fails, the state is unchanged.
    package func commit() throws(SQLiteError) {
        do {
            try execute("COMMIT")
        } catch {
            rollBack()
            throw error
        }
    }

    private func savepoint<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws -> Result {
        try execute("SAVEPOINT nested")
        do {
            let result = try body()
            try execute("RELEASE nested")
            return result
        } catch {
            // If the whole transaction has ended (disk full), there is no savepoint to roll back to.
            if unsafe sqlite3_get_autocommit(handle) == 0 {
                unsafe sqlite3_exec(handle, "ROLLBACK TO nested; RELEASE nested", nil, nil, nil)
            }
            throw error
        }
    }

    /// Reverts everything since the beginning of the transaction.
    package func rollBack() {
        // SQLite rolls back by itself after some errors; then there is nothing left to do.
        if unsafe sqlite3_get_autocommit(handle) == 0 { unsafe sqlite3_exec(handle, "ROLLBACK", nil, nil, nil) }
    }

    // MARK: Facts

    /// Returns up to `count` free pages to the file system, if the database was created with `reclaimsPages`.
    package func releasePages(_ count: Int64) throws(SQLiteError) { try run("PRAGMA incremental_vacuum(\(count))") }

    /// Whether the path no longer names the opened file: it was renamed, replaced or deleted.
    package var hasMoved: Bool {
        var result: Int32 = 0
        let answer = unsafe sqlite3_file_control(handle, "main", SQLITE_FCNTL_HAS_MOVED, &result)
        return answer == SQLITE_OK && result != 0
    }

    /// Sets whether a commit survives power loss or only the death of the process, from the next transaction on.
    package func setDurability(_ durability: Durability) throws(SQLiteError) {
        try execute(durability == .full ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL")
    }

    /// Copies the log into the file and truncates it; false if readers or writers prevented it, for which it does not wait.
    package func checkpoint() throws(SQLiteError) -> Bool {
        let milliseconds = try integer("PRAGMA busy_timeout")
        unsafe sqlite3_busy_timeout(handle, 0)
        defer { unsafe sqlite3_busy_timeout(handle, Int32(clamping: milliseconds)) }
        return try integer("PRAGMA wal_checkpoint(TRUNCATE)") == 0
    }

    /// The row of the last insertion.
    package var lastInsertRowID: Int64 { unsafe sqlite3_last_insert_rowid(handle) }

    /// The number of rows that the last statement inserted, changed or deleted.
    package var changes: Int { Int(unsafe sqlite3_changes64(handle)) }

    /// The number of rows inserted, changed or deleted since the connection was opened.
    package var changesTotal: Int64 { unsafe sqlite3_total_changes64(handle) }

    /// The integer result of a statement, such as a pragma.
    package func integer(_ sql: SQLText) throws(SQLiteError) -> Int64 {
        let statement = try prepare(sql)
        defer { statement.reset() }
        guard try statement.step() else {
            throw SQLiteError(code: .error, message: "the statement returned no row", sql: sql.description)
        }
        return statement.int64(0)
    }

    /// The application's schema version in the file header.
    package func setUserVersion(_ version: Int32) throws(SQLiteError) { try run("PRAGMA user_version = \(version)") }

    /// The application ID in the file header, by which tools identify the file.
    package func setApplicationID(_ id: Int32) throws(SQLiteError) { try run("PRAGMA application_id = \(id)") }

    /// The structural errors of the file; empty if there are none. Cost: reads the whole file.
    package func integrityProblems() throws(SQLiteError) -> [String] {
        let statement = try prepare("PRAGMA integrity_check(20)")
        defer { statement.reset() }
        var problems: [String] = []
        while try statement.step() { problems.append(statement.text(0)) }
        return problems == ["ok"] ? [] : problems
    }

    func error(_ sql: SQLText) -> SQLiteError { unsafe SQLiteError(handle, sql: sql.description) }
}
