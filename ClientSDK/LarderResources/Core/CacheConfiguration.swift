public import LarderEvents
public import LarderStorage
public import LarderTime

/// The settings of a cache.
public struct CacheConfiguration: Sendable {
    /// Where values are stored.
    public enum Storage: Sendable {
        /// In memory only.
        case memory
        /// In a store that the cache opens. Use one directory for each account (`DiskStore.directory(forAccount:in:)`). The store's
        /// clock is replaced by `wallClock`, and its events are also reported to `onEvent`.
        case disk(DiskStore.Configuration)
        /// In an open store. Its events go where its own configuration says.
        case store(DiskStore)

        /// In a store with standard settings, in a directory that is made with mode 0700 if it does not exist.
        public static func directory(_ path: String) -> Storage { .disk(DiskStore.Configuration(directory: path)) }
    }

    /// An operation of the outbox: a `WriteBehind` or a `WriteThrough`. Other types must not conform.
    public protocol Operation: Sendable {
        /// The name of the operation in the store.
        var name: String { get }
    }

    /// Where values are stored.
    public var storage: Storage
    /// The rules of the freshness classes. A class without one has that of `interactive`.
    public var freshness: [Freshness.Class: Freshness.Rule] = .standard
    /// The maximum size of the entities in memory in bytes, counted as encoded plus some overhead for each. Lists of keys, values that
    /// were assembled for readers, and the encoded rows of what is kept off the disk may each take a quarter of it on top; values that are
    /// observed stay. In a cache without a directory the rows may take the same size again. At least 64 KiB.
    public var memoryBytesMaximum = 32 << 20
    /// The maximum number of entities, and of lists, in memory. At least 64.
    public var memoryEntriesMaximum = 20_000
    public var wallClock: any WallClock = SystemWallClock()
    /// Measures durations; used for every delay and timeout.
    public var monotonicClock: any MonotonicClock = SystemMonotonicClock()
    /// Orders requests, events and changes. What shares a store shares the source, or its clock.
    package var stamps = StampSource.system
    /// Returns numbers in 0..<1 for jitter.
    public var random: @Sendable () -> Double = { Double.random(in: 0..<1) }
    /// The delays before a key is requested again after a failure: `base` and `ceiling`, with full jitter, and not before `Retry-After`. A
    /// refresh and a gate do not wait for them.
    ///
    /// An observed value that is missing or stale is requested again after each delay, until it comes, the server rejects the request
    /// (4xx) or nobody observes it. The maxima apply to one case only: a read without a stored value, or a gate, whose request was
    /// answered with a `Retry-After` of at most 5 s. It is repeated while the caller waits, within the time limit of the read.
    public var readRetry = RetryPolicy(base: .seconds(1), ceiling: .seconds(60))
    /// Limits the reads that follow a failure among all requests of the cache.
    package var readRetryBudget = RetryPolicy.Budget(share: 0.1, reserve: 20)
    /// Makes a unique idempotency key.
    public var makeIdempotencyKey: @Sendable () -> String = { RandomKey.make() }
    /// The operations that the outbox shows and sends from the first read on, including those of an earlier process. Stored operations
    /// whose name is not registered, here or by `Outbox.register`, are kept and neither shown nor sent (`CacheEvent.unregistered`).
    public var operations: [any Operation] = []
    /// The maximum number of operations in the outbox, rejected ones included. Further ones fail with `.outboxFull`.
    public var outboxOperationsMaximum = 100_000
    /// The maximum size in bytes of the operations in the outbox: encoded inputs, names and keys, which are also in memory. Further ones
    /// fail with `.outboxFull`.
    public var outboxBytesMaximum = 64 << 20
    /// The maximum number of batches that the outbox sends at once on a good network, for all scopes together
    /// (`NetworkBehavior.concurrencyFactor` reduces it), and one more for an awaited operation. The others wait; their timeouts begin
    /// when they are sent. At least 1.
    public var concurrentSendsMaximum = 4
    /// Lets one process at a time send from the outbox if several have one store open; nil: a lock file in the store's directory, or no
    /// lock if the cache is in memory only.
    package var outboxLock: (any ProcessLock)?
    /// Whether the network may be used at present. If not, requests fail at once and nothing is sent. It is called more than once for
    /// one request and must be cheap and without side effects. Call `LarderCache.networkReturned` when it becomes true again.
    public var mayUseNetwork: @Sendable () -> Bool = { true }
    /// Which background work is allowed at the current network level: the current behavior of a `NetworkMonitor`. Called outside of
    /// locks. Call `LarderCache.networkBehaviorChanged` after a change.
    public var networkBehavior: @Sendable () -> NetworkBehavior = { .unrestricted }
    /// Receives the events of the cache, on any thread, never while a lock is held.
    public var onEvent: @Sendable (CacheEvent) -> Void = { _ in }

    /// Creates settings with defaults.
    public init(_ storage: Storage = .memory) { self.storage = storage }
}
