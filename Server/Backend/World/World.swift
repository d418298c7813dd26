import LarderCoding
package import LarderHTTP
package import LarderSQLite
package import LarderTime
import Synchronization

/// An isolated state with its own clock: everything that a client can see belongs to one world.
///
/// Safe from any thread. All state is in SQLite and reached under one lock; what is cached beside it carries the stamp of the
/// state it came from. Lock order: the store, then the live hub; the response cache and the random source are leaves.
package final class World: Sendable {
    package let name: String
    package let settings: WorldSettings
    package let clock: any WallClock
    let images: ImageCatalogue
    let stamp = CommitStamp()
    let cache: ResponseCache
    let live = LiveHub()
    let authenticator = Authenticator()
    let keysInFlight = KeysInFlight()
    let limiter: RateLimiter?
    private let random: Mutex<SeededGenerator>
    private let store: Mutex<Confined>

    /// `@unchecked Sendable`: a store is made in `init`, put behind the mutex there, and from then on only ever reached by the
    /// closures that `read` and `write` run under it. Nothing of it leaves them, because their results are `Sendable`.
    private struct Confined: @unchecked Sendable {
        let store: Store
    }

    /// Takes over a database whose schema is in place.
    package init(
        name: String,
        database: sending Database,
        images: ImageCatalogue,
        clock: any WallClock,
        seed: UInt64,
        settings: WorldSettings
    ) throws(SQLiteError) {
        self.name = name
        self.settings = settings
        self.clock = clock
        self.images = images
        cache = ResponseCache(stamp: stamp, bytesMaximum: settings.responseCacheBytesMaximum)
        limiter = settings.rateLimit.map { RateLimiter(quota: $0, window: settings.rateWindow) }
        var generator = SeededGenerator(seed: seed)
        let instance = generator.next()
        random = Mutex(generator)
        store = Mutex(Confined(store: try Store(database, instance: instance)))
    }

    /// Reads a consistent state: no commit happens while `body` runs.
    ///
    /// - Throws: the problem that `body` throws, or `storage-unavailable` when the database refuses.
    func read<Result: Sendable>(_ body: (Store) throws -> Result) throws(Problem) -> Result {
        do {
            return try store.withLock { try body($0.store) }
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
                let store = confined.store
                var commit = Commit(now: clock.now)
                let result = try store.database.transaction(.immediate) { try body(store, &commit) }
                // Raised and announced while the store is still held, so that the order of announcements is the order of
                // commits, and nobody who has the reply can be served what was before it.
                stamp.raise(commit.touched)
                live.publish(commit.changes, from: store)
                return result
            }
        } catch {
            throw Self.problem(error)
        }
    }

    /// A number from the world's own random source.
    func randomNumber() -> UInt64 { random.withLock { $0.next() } }

    /// A new secret of 160 bits, URL-safe.
    func newSecret(prefix: String) -> String {
        random.withLock { generator in
            var bytes: [UInt8] = []
            for _ in 0..<3 {
                let word = generator.next()
                for shift in stride(from: UInt64(0), to: 64, by: 8) where bytes.count < 20 {
                    bytes.append(UInt8(truncatingIfNeeded: word >> shift))
                }
            }
            return prefix + Base64.encodeURL(bytes)
        }
    }

    /// The first people of the world.
    package func firstPeople(_ count: Int) throws(Problem) -> [(name: String, handle: String)] {
        try read { store in
            var people: [(name: String, handle: String)] = []
            for row in 1...Int64(max(1, count)) {
                guard let members = try store.profiles.find(row)?.members else { break }
                people.append((members["displayName"]?.string ?? "", members["handle"]?.string ?? ""))
            }
            return people
        }
    }

    /// Contradictions in the ledger; none in a sound one.
    package func checkLedger() throws(Problem) -> [LedgerFault] {
        try read { try LedgerCheck.run($0.database) }
    }

    private static func problem(_ error: any Error) -> Problem {
        switch error {
        case let problem as Problem: problem
        case let error as SQLiteError: ProblemType.storageUnavailable("The database refused: \(error).")
        default: ProblemType.internalError("\(error)")
        }
    }
}
