import LarderCoding
import LarderEngine
package import LarderHTTP
package import LarderSQLite
import LarderTime
import Synchronization

/// An isolated state with its own clock: everything that a client can see belongs to one world.
///
/// Safe from any thread. All state is in SQLite and reached under one lock; what is cached beside it carries the stamp of the
/// state it came from. Lock order: the store, then the live hub; the response cache, the clock and the random source are
/// leaves.
package final class World: Sendable {
    /// `main`, or what its creator was told.
    package let id: String
    /// What its paths begin with: nothing for `main`, else `/w/` and its identifier.
    package let basePath: String
    package let settings: WorldSettings
    package let clock: WorldClock
    package let seed: UInt64
    let images: ImageCatalogue
    let stamp = CommitStamp()
    let cache: ResponseCache
    let live = LiveHub()
    let authenticator = Authenticator()
    let keysInFlight = KeysInFlight()
    let limiter: RateLimiter?
    let control: WorldControl
    private let instances: Mutex<InstanceSource>
    private let store: Mutex<Confined>
    private let commits = Atomic<Int64>(0)
    let heartbeat = Mutex<TimerID?>(nil)
    /// Whether commits wait for a disk, so that it pays to let several share one.
    private let groupsCommits: Bool

    /// `@unchecked Sendable`: a store is made in `init` or `replace`, put behind the mutex there, and from then on only ever
    /// reached by the closures that the methods here run under it. Nothing of it leaves them, because their results are
    /// `Sendable`.
    private struct Confined: @unchecked Sendable {
        var store: Store
        /// The histories that went on from the world's origin, which a reset goes back to.
        var origins: [UInt64] = []
        /// Writes that were carried out and wait for their common commit.
        var batch: [Commit] = []
        /// Numbers the batches, from 1.
        var batchNumber = 0
        /// The last batches that could not be committed, for those who ask for theirs late.
        var lost: [(batch: Int, problem: Problem)] = []
        var replies: [(Exchange, Reply)] = []
        var history: StateHistory?
    }

    /// Takes over a database whose schema is in place.
    ///
    /// - Parameter outlivesProcess: whether the database is in a file, and not only in memory.
    init(
        id: String,
        database: sending Database,
        images: ImageCatalogue,
        clock: WorldClock,
        seed: UInt64,
        settings: WorldSettings,
        headFaults: HeadFaultCount,
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
        control = WorldControl(seed: seed, journalCapacity: settings.journalCapacity, headFaults: headFaults)
        var source = outlivesProcess ? InstanceSource.system : .seeded(SeededGenerator(seed: seed))
        let instance = source.next()
        instances = Mutex(source)
        store = Mutex(Confined(store: try Store(database, instance: instance)))
    }

    /// Begins as a copy of an image.
    ///
    /// - Parameter branches: whether it is a history of its own from here on; a replay is not.
    convenience init(
        id: String,
        image: DatabaseImage,
        images: ImageCatalogue,
        clock: WorldClock,
        seed: UInt64,
        settings: WorldSettings,
        headFaults: HeadFaultCount,
        branches: Bool = true
    ) throws {
        var options = Database.Options()
        // Pages lie in memory already: what is cached besides is only what is being changed.
        options.pageCacheKibibytes = 256
        try self.init(
            id: id,
            database: try Database(.image(image), options),
            images: images,
            clock: clock,
            seed: seed,
            settings: settings,
            headFaults: headFaults
        )
        if branches { try branch() }
        store.withLock { $0.origins = [$0.store.instance] }
    }

    /// The world that serves the plain paths.
    package static let mainID = "main"

    // MARK: Reading and writing

    /// Reads a consistent state: no commit happens while `body` runs.
    ///
    /// - Throws: the problem that `body` throws, or `storage-unavailable` when the database refuses.
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

    /// Runs `body` in a transaction, commits it, and then announces what it changed. When it throws, nothing has happened.
    ///
    /// - Throws: the problem that `body` throws, or `storage-unavailable` when the database refuses.
    func write<Result: Sendable>(_ body: (Store, inout Commit) throws -> Result) throws(Problem) -> Result {
        do {
            return try store.withLock { confined in
                settle(&confined)
                let store = confined.store
                var commit = Commit(now: clock.now)
                let result = try store.database.transaction(.immediate) { try body(store, &commit) }
                announce(commit, &confined)
                return result
            }
        } catch {
            throw Self.problem(error)
        }
    }

    /// As `write`, for a request that is being answered: its commit may be shared with others of the same turn of the loop.
    /// The reply must then be given to `holdBack`.
    ///
    /// - Returns: what `body` returns, the number that the commit has or will have, and the batch that it waits in.
    func writeForReply<Result: Sendable>(
        _ body: (Store, inout Commit) throws -> Result
    ) throws(Problem) -> (Result, commit: Int64, batch: Int?) {
        // A live event shows the state at its own commit, and so needs one.
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
                        // Nothing was done yet: nothing is to be committed.
                        store.database.rollBack()
                    } else {
                        // A refusal leaves at once and tells of the state that it met, so that state is committed first.
                        // And where the disk has ended the whole transaction, those who wait for it are told so now.
                        settle(&confined)
                    }
                    throw error
                }
            }
        } catch {
            throw Self.problem(error)
        }
    }

    /// What becomes of the reply to a write.
    enum Holding {
        /// It leaves with the commit that it tells of.
        case held
        /// What it tells of is committed.
        case free
        /// What it tells of could not be committed: this is the reply instead.
        case lost(Reply)
    }

    /// Keeps a reply until what it tells of is committed. Another loop may have seen to that already.
    func holdBack(_ reply: Reply, _ exchange: Exchange, batch: Int) -> Holding {
        store.withLock { confined in
            if confined.batchNumber == batch, !confined.batch.isEmpty {
                if confined.replies.isEmpty { exchange.loop.atEndOfTurn { [self] in settle() } }
                confined.replies.append((exchange, reply))
                return .held
            }
            guard let lost = confined.lost.first(where: { $0.batch == batch }) else { return .free }
            return .lost(refusal(lost.problem, insteadOf: reply))
        }
    }

    private func refusal(_ problem: Problem, insteadOf reply: Reply) -> Reply {
        var refusal = problem.reply
        refusal.note.owner = self
        refusal.note.subject = reply.note.subject
        return refusal
    }

    /// Commits what waits for it.
    package func settle() { store.withLock { settle(&$0) } }

    private func settle(_ confined: inout Confined) {
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
            // As many as loops can be late by.
            confined.lost = confined.lost.suffix(255) + [(confined.batchNumber, problem)]
            for (exchange, reply) in replies { Self.complete(exchange, refusal(problem, insteadOf: reply)) }
        }
    }

    /// Sends a reply that waited for its commit. Through the loop's mailbox, because whoever takes replies on their way may
    /// come back for the store, which is held here.
    private static func complete(_ exchange: Exchange, _ reply: Reply) {
        guard exchange.interceptor != nil else { return exchange.complete(reply) }
        exchange.loop.execute { exchange.complete(reply) }
    }

    /// Raised and announced while the store is still held, so that the order of announcements is the order of commits, and
    /// nobody who has the reply can be served what was before it.
    private func announce(_ commit: Commit, _ confined: inout Confined) {
        let number = commits.add(1, ordering: .relaxed).newValue
        if let history = confined.history {
            history.committed(number, at: commit.now)
            if !control.faults.hasLag { forget(history, &confined) }
        }
        stamp.raise(commit.touched)
        live.publish(commit.changes, from: confined.store)
        control.committed(number, commit.changes)
    }

    /// Nobody asks for the past any more: writes need not pay for it.
    private func forget(_ history: StateHistory, _ confined: inout Confined) {
        do {
            try history.end()
            confined.history = nil
        } catch {
            // It goes on being written, which costs time and nothing else; the next commit tries again.
        }
    }

    /// How many transactions were committed since the world was made.
    package var commitCount: Int64 { commits.load(ordering: .relaxed) }

    // MARK: The past

    /// Begins to remember how each commit can be undone; harmless when it was begun before.
    func rememberHistory() throws(Problem) {
        do {
            try store.withLock { confined in
                settle(&confined)
                if confined.history == nil {
                    confined.history = try StateHistory(confined.store.database, from: commitCount, at: clock.now)
                }
            }
        } catch { throw Self.problem(error) }
    }

    /// Reads the state as it was after the last commit that `isPast` accepts, as far back as it is remembered.
    func readPast<Result: Sendable>(
        upTo limit: StateHistory.Limit,
        _ body: (Store) throws -> Result
    ) throws(Problem) -> Result {
        do {
            return try store.withLock { confined in
                settle(&confined)
                guard let history = confined.history else { return try body(confined.store) }
                let store = confined.store
                return try history.asItWas(limit, now: clock.now, newest: commitCount) { try body(store) }
            }
        } catch { throw Self.problem(error) }
    }

    // MARK: Whole states

    /// The state as an image that other worlds can begin from.
    package func image() throws(Problem) -> DatabaseImage {
        do {
            return try store.withLock { confined in
                settle(&confined)
                return try confined.store.database.image()
            }
        } catch { throw Self.problem(error) }
    }

    /// Puts another state in the place of this one. Tokens stay good for what both have in common, and lead to a resync
    /// otherwise; whoever listens live is sent away to read on.
    ///
    /// - Parameter isOrigin: whether it is the state that the world began with.
    package func replace(with image: DatabaseImage, isOrigin: Bool = false) throws(Problem) {
        do {
            var options = Database.Options()
            options.pageCacheKibibytes = 256
            let database = try Database(.image(image), options)
            let store = try Store(database, instance: newInstance())
            try store.branch(newInstance())
            let confined = Confined(store: store)
            try self.store.withLock { current in
                settle(&current)
                var next = confined
                next.origins = current.origins
                // A replica that lags goes on lagging, behind the state that is there now.
                if control.faults.hasLag {
                    next.history = try StateHistory(store.database, from: commitCount, at: clock.now)
                }
                if isOrigin {
                    // All of them began where this one begins again.
                    for instance in current.origins { try next.store.share(instance) }
                    next.origins = current.origins.suffix(100) + [next.store.instance]
                }
                current = next
                stamp.raise([.profiles, .posts, .bank, .chat])
                cache.removeAll()
                authenticator.forgetAll()
                authenticator.forgetHandles()
            }
            live.endAll()
        } catch { throw Self.problem(error) }
    }

    /// Makes the tokens of what was before a fork good here, and those of what comes after it good here alone.
    package func branch() throws(Problem) {
        let instance = newInstance()
        do { try store.withLock { try $0.store.branch(instance) } } catch { throw Self.problem(error) }
    }

    /// Goes on as a history that has nothing in common with any before: no token that was issued is good any more. Returns
    /// the histories that are over.
    package func endHistories() throws(Problem) -> Set<UInt64> {
        let instance = newInstance()
        do {
            return try store.withLock { confined in
                settle(&confined)
                let ended = try confined.store.beginAnew(instance)
                // Live channels stay; the next event's token is none that its reader can follow.
                live.goOn(as: instance)
                return ended
            }
        } catch { throw Self.problem(error) }
    }

    /// An identity for a history that begins now.
    private func newInstance() -> UInt64 { instances.withLock { $0.next() } }

    /// What a caller is told of an error: of the database no statement, no table and no column.
    static func problem(_ error: any Error) -> Problem {
        switch error {
        case let problem as Problem: problem
        case let error as SQLiteError: ProblemType.storageUnavailable("The database failed: \(error.summary)")
        default: ProblemType.internalError(SQLiteError.summary(of: error))
        }
    }
}
