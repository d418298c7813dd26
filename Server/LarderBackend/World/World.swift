import LarderCoding
import LarderEngine
package import LarderHTTP
package import LarderSQLite
import LarderTime
import Synchronization

/// An isolated state with its own clock. Everything that a client can see belongs to one world.
///
/// Safe from any thread. All state is in SQLite under one lock; caches carry the stamp of the state that they came from. Lock
/// order: the store, then the live hub; the response cache, the clock and the random source are leaves.
package final class World: Sendable {
    /// `main`, or the identifier given by the creator.
    package let id: String
    /// The prefix of the world's paths: empty for `main`, otherwise `/w/` and the identifier.
    package let basePath: String
    package let settings: WorldSettings
    package let clock: WorldClock
    package let seed: UInt64
    package let images: ImageCatalogue
    package let stamp = CommitStamp()
    let cache: ResponseCache
    package let live = LiveHub()
    package let authenticator = Authenticator()
    package let keysInFlight = KeysInFlight()
    let limiter: RateLimiter?
    package let hooks: any WorldHooks
    private let instances: Mutex<InstanceSource>
    let store: Mutex<Confined>
    let names: Mutex<[String]>
    let isCollections: Atomic<Bool>
    private let commits = Atomic<Int64>(0)
    let heartbeat = Mutex<TimerID?>(nil)
    /// Whether commits wait for a disk, so that sharing commits pays.
    private let groupsCommits: Bool

    /// `@unchecked Sendable`: a store is made in `init` or `replace`, put behind the mutex there, and from then on only ever
    /// reached by the closures that the methods here and in `World+States.swift` run under it. Nothing of it leaves them, because
    /// their results are `Sendable`.
    struct Confined: @unchecked Sendable {
        var store: Store
        /// The histories that continued the world's origin, which a reset returns to.
        var origins: [UInt64] = []
        /// Executed writes that wait for their common commit.
        var batch: [Commit] = []
        /// Numbers the batches, from 1.
        var batchNumber = 0
        /// The last batches whose commit failed, for replies that arrive late.
        var lost: [(batch: Int, problem: Problem)] = []
        var replies: [(Exchange, Reply)] = []
        var history: StateHistory?
    }

    /// Takes ownership of a database that has the schema.
    ///
    /// - Parameter outlivesProcess: whether the database is a file.
    package init(
        id: String,
        database: sending Database,
        images: ImageCatalogue,
        clock: WorldClock,
        seed: UInt64,
        settings: WorldSettings,
        hooks: any WorldHooks,
        outlivesProcess: Bool = false
    ) throws(SQLiteError) {
        self.id = id
        basePath = id == Self.mainID ? "" : "/w/" + id
        self.settings = settings
        self.clock = clock
        self.images = images
        self.seed = seed
        groupsCommits = outlivesProcess
        cache = ResponseCache(stamp: stamp, bytesMaximum: settings.responseCacheBytesMaximum)
        limiter = settings.rateLimit.map { RateLimiter(quota: $0, window: settings.rateWindow) }
        self.hooks = hooks
        var source = outlivesProcess ? InstanceSource.system : .seeded(SeededGenerator(seed: seed))
        let instance = source.next()
        instances = Mutex(source)
        let confined = Confined(store: try Store(database, instance: instance))
        let collections = try confined.store.documents.collections()
        names = Mutex(collections)
        isCollections = Atomic(!collections.isEmpty)
        store = Mutex(confined)
    }

    /// Starts as a copy of an image, with a history of its own.
    package convenience init(
        id: String,
        image: DatabaseImage,
        images: ImageCatalogue,
        clock: WorldClock,
        seed: UInt64,
        settings: WorldSettings,
        hooks: any WorldHooks
    ) throws {
        var options = Database.Options()
        // Pages are already in memory, so the page cache only holds those being changed.
        options.pageCacheKibibytes = 256
        try self.init(
            id: id,
            database: try Database(.image(image), options),
            images: images,
            clock: clock,
            seed: seed,
            settings: settings,
            hooks: hooks
        )
        try branch()
        store.withLock { $0.origins = [$0.store.instance] }
    }

    /// The identifier of the world at the plain paths.
    package static let mainID = "main"

    /// The names of the user's own collections, which the world then serves instead of the demo API; empty without any.
    package var collections: [String] { names.withLock { $0 } }

    /// Whether `collections` has any; without a lock.
    var hasCollections: Bool { isCollections.load(ordering: .acquiring) }

    // MARK: Reading and writing

    /// Reads a consistent state: no commit happens while `body` runs.
    ///
    /// - Throws: the problem that `body` throws, or `storage-unavailable` if the database fails.
    func read<Result: Sendable>(_ body: (Store) throws -> Result) throws(Problem) -> Result {
        do {
            return try store.withLock { confined in
                settle(&confined)
                return try body(confined.store)
            }
        } catch {
            throw Self.problem(error)
        }
    }

    /// Runs `body` in a transaction, commits it and announces its changes. If it throws, the state is unchanged.
    ///
    /// - Throws: the problem that `body` throws, or `storage-unavailable` if the database fails.
    func write<Result: Sendable>(_ body: (Store, inout Commit) throws -> Result) throws(Problem) -> Result {
        do {
            return try store.withLock { confined in
                settle(&confined)
                let store = confined.store
                var commit = Commit(now: clock.now)
                let result = try store.database.transaction { try body(store, &commit) }
                announce(commit, &confined)
                return result
            }
        } catch {
            throw Self.problem(error)
        }
    }

    /// As `write`, for a request: its commit may be shared with other requests of the same turn of the loop. The reply must be
    /// passed to `holdUntilCommitted`.
    ///
    /// - Returns: the result of `body`, the number that the commit has or will have, and the batch in which it waits.
    func writeForReply<Result: Sendable>(
        _ body: (Store, inout Commit) throws -> Result
    ) throws(Problem) -> (Result, commit: Int64, batch: Int?) {
        // A live event shows the state at its own commit, so the commit cannot be shared.
        guard groupsCommits, live.readerCount == 0 else {
            let result = try write(body)
            return (result, commitCount, nil)
        }
        do {
            return try store.withLock { confined in
                let store = confined.store
                if confined.batch.isEmpty {
                    try store.database.begin()
                    confined.batchNumber += 1
                }
                var commit = Commit(now: clock.now)
                do {
                    let result = try store.database.transaction { try body(store, &commit) }
                    confined.batch.append(commit)
                    return (result, commitCount + Int64(confined.batch.count), confined.batchNumber)
                } catch {
                    if confined.batch.isEmpty {
                        // The batch is empty: there is nothing to commit.
                        store.database.rollBack()
                    } else {
                        // A rejection is sent at once and describes the state that it saw, so that state is committed first. If
                        // the disk ended the whole transaction, the waiting replies fail now.
                        settle(&confined)
                    }
                    throw error
                }
            }
        } catch {
            throw Self.problem(error)
        }
    }

    /// How the reply to a write is sent.
    enum ReplyDisposition {
        /// It is sent after the batch is committed.
        case held
        /// The batch is committed: it can be sent.
        case free
        /// The commit failed: this reply is sent instead.
        case lost(Reply)
    }

    /// Holds a reply until its batch is committed. Another loop may already have committed it.
    func holdUntilCommitted(_ reply: Reply, _ exchange: Exchange, batch: Int) -> ReplyDisposition {
        store.withLock { confined in
            if confined.batchNumber == batch, !confined.batch.isEmpty {
                if confined.replies.isEmpty { exchange.loop.atEndOfTurn { [self] in settle() } }
                confined.replies.append((exchange, reply))
                return .held
            }
            guard let lost = confined.lost.first(where: { $0.batch == batch }) else { return .free }
            return .lost(rejection(lost.problem, insteadOf: reply))
        }
    }

    private func rejection(_ problem: Problem, insteadOf reply: Reply) -> Reply {
        var rejection = problem.reply
        rejection.note.owner = self
        rejection.note.subject = reply.note.subject
        return rejection
    }

    /// Commits the pending batch.
    package func settle() { store.withLock { settle(&$0) } }

    func settle(_ confined: inout Confined) {
        guard !confined.batch.isEmpty else { return }
        let (batch, replies) = (confined.batch, confined.replies)
        confined.batch.removeAll(keepingCapacity: true)
        confined.replies.removeAll(keepingCapacity: true)
        do {
            try confined.store.database.commit()
            for commit in batch { announce(commit, &confined) }
            for (exchange, reply) in replies { Self.complete(exchange, reply) }
        } catch {
            let problem = Self.problem(error)
            // As many batches as other loops can lag behind.
            confined.lost = confined.lost.suffix(255) + [(confined.batchNumber, problem)]
            for (exchange, reply) in replies { Self.complete(exchange, rejection(problem, insteadOf: reply)) }
        }
    }

    /// Sends a reply that waited for its commit. If the exchange has an interceptor, through the loop's mailbox, because the
    /// interceptor may need the store, which is locked here.
    private static func complete(_ exchange: Exchange, _ reply: Reply) {
        guard exchange.interceptor != nil else { return exchange.complete(reply) }
        exchange.loop.execute { exchange.complete(reply) }
    }

    /// Runs while the store is still locked, so that announcements are in commit order, and a client that has the reply cannot
    /// be served an older state.
    private func announce(_ commit: Commit, _ confined: inout Confined) {
        let number = commits.add(1, ordering: .relaxed).newValue
        if let history = confined.history {
            history.committed(number, at: commit.now)
            if !hooks.readsPast { forget(history, &confined) }
        }
        stamp.raise(commit.touched)
        live.publish(commit.changes, from: confined.store)
        hooks.committed(number)
    }

    /// No fault reads the past any more, so writes stop recording it.
    private func forget(_ history: StateHistory, _ confined: inout Confined) {
        do {
            try history.end()
            confined.history = nil
        } catch {
            // Recording continues, which only costs time; the next commit tries again.
        }
    }

    /// The number of committed transactions since the world was made.
    package var commitCount: Int64 { commits.load(ordering: .relaxed) }

    /// Whether the control plane cannot affect an exchange on the path.
    package func isUntouched(_ path: ArraySlice<UInt8>) -> Bool { clock.followsSystem && !hooks.affects(path) }

    /// The identity of a new history.
    func newInstance() -> UInt64 { instances.withLock { $0.next() } }

    /// The problem for an error. It does not reveal statements, tables or columns.
    package static func problem(_ error: any Error) -> Problem {
        switch error {
        case let problem as Problem: problem
        case let error as SQLiteError: ProblemType.storageUnavailable("The database failed: \(error.summary)")
        default: ProblemType.internalError(SQLiteError.summary(of: error))
        }
    }
}
