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
    let cache: ResponseCache
    package let live = LiveHub()
    let limiter: RateLimiter?
    package let hooks: any WorldHooks
    /// The source of history identities.
    private let instances: Mutex<any RandomNumberGenerator & Sendable>
    let store: Mutex<Confined>
    let names: Mutex<[String]>
    private let commits = Atomic<Int64>(0)
    private let stamps = Atomic<UInt64>(0)
    let heartbeat = Mutex<TimerID?>(nil)

    /// `@unchecked Sendable`: a store is made in `init` or `replace`, put behind the mutex there, and from then on only ever
    /// reached by the closures that the methods here and in `World+States.swift` run under it. Nothing of it leaves them, because
    /// their results are `Sendable`.
    struct Confined: @unchecked Sendable {
        var store: Store
        var history: StateHistory?
    }

    /// - Parameters:
    ///   - database: one that has the schema, which the world then owns.
    ///   - isCopy: whether it is a copy, which has a history of its own.
    ///   - instances: the source of history identities, which must differ from those of all other histories whose tokens a client can have:
    ///     for a database file also from those of other runs.
    package init(
        id: String,
        database: sending Database,
        isCopy: Bool = false,
        images: ImageCatalogue,
        clock: WorldClock,
        seed: UInt64,
        settings: WorldSettings,
        hooks: any WorldHooks,
        instances: any RandomNumberGenerator & Sendable
    ) throws(SQLiteError) {
        self.id = id
        basePath = id == Self.mainID ? "" : "/w/" + id
        self.settings = settings
        self.clock = clock
        self.images = images
        self.seed = seed
        cache = ResponseCache(bytesMaximum: settings.responseCacheBytesMaximum)
        limiter = settings.rateLimit.map { RateLimiter(quota: $0, window: settings.rateWindow) }
        self.hooks = hooks
        var source = instances
        let confined = Confined(store: try Store(database))
        if isCopy || confined.store.instance == 0 { try confined.store.begin(source.next()) }
        self.instances = Mutex(source)
        names = Mutex(try confined.store.collections.names())
        store = Mutex(confined)
    }

    /// A copy of a state.
    package static func database(_ image: DatabaseImage) throws(SQLiteError) -> sending Database {
        var options = Database.Options()
        // Pages are already in memory, so the page cache only holds those being changed.
        options.pageCacheKibibytes = 256
        return try Database(.image(image), options)
    }

    /// The identifier of the world at the plain paths.
    package static let mainID = "main"

    /// The names of the user's own collections, which the world then serves instead of the demo API; empty without any.
    package var collections: [String] { names.withLock { $0 } }

    package var hasCollections: Bool { names.withLock { !$0.isEmpty } }

    /// The path of the change feed.
    package var changesPath: String { hasCollections ? "/changes" : "/v1/changes" }

    func changeReader(_ store: Store) -> ChangeReader {
        ChangeReader(store: store, retention: settings.tombstoneRetention, now: clock.now, resync: resync)
    }

    /// The problem that tells a reader of the change feed to begin anew, as the dialect requires.
    func resync(_ detail: String, reason: String) -> Problem {
        var problem = ProblemType.resyncRequired(detail, fields: [.location: changesPath])
        problem.extensions["reason"] = .string(reason)
        problem.extensions["resync"] = .string(hooks.dialect.resync.rawValue)
        return problem
    }

    // MARK: Reading and writing

    /// Reads a consistent state: no commit happens while `body` runs.
    ///
    /// - Throws: the problem that `body` throws, or `storage-unavailable` if the database fails.
    func read<Result: Sendable>(_ body: (Store) throws -> Result) throws(Problem) -> Result {
        try locked { try body($0.store) }
    }

    /// Runs `body` while nobody else uses the store.
    func locked<Result: Sendable>(_ body: (inout Confined) throws -> Result) throws(Problem) -> Result {
        do { return try store.withLock { try body(&$0) } } catch { throw Self.problem(error) }
    }

    /// Runs `body` in a transaction, commits it and announces its changes. If it throws, the state is unchanged.
    ///
    /// - Returns: also the number of the commit.
    /// - Throws: the problem that `body` throws, or `storage-unavailable` if the database fails.
    @discardableResult
    func commit<Result: Sendable>(
        _ body: (Store, inout Commit) throws -> Result
    ) throws(Problem) -> (result: Result, number: Int64) {
        try locked { confined in
            let store = confined.store
            var commit = Commit(now: clock.now)
            let result = try store.database.transaction { try body(store, &commit) }
            // The store is still locked, so that announcements are in commit order, and a client that has the reply cannot be served an
            // older state.
            let number = commits.add(1, ordering: .relaxed).newValue
            confined.history?.committed(number, at: commit.now)
            invalidateReplies()
            live.publish(commit.changes, from: store)
            hooks.committed(number)
            return (result, number)
        }
    }

    /// The stamp of the state: a cached reply is valid while it is that of the state from which the reply was made.
    ///
    /// It is raised after a commit and before the commit's reply is sent, while the store is still locked: a client whose write was
    /// acknowledged cannot be served a reply from before it.
    var stamp: UInt64 { stamps.load(ordering: .acquiring) }

    /// Invalidates all cached replies.
    package func invalidateReplies() { stamps.add(1, ordering: .releasing) }

    /// The number of committed transactions since the world was made.
    package var commitCount: Int64 { commits.load(ordering: .relaxed) }

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
