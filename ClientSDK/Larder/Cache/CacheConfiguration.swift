public import LarderTime

/// How a cache is kept. One value says it all.
public struct CacheConfiguration: Sendable {
    /// Where it lives: a directory of its own for each account (`DiskStore.directory(forAccount:in:)`); nil: in memory only.
    public var directory: String?
    /// An open store, to be used instead of `directory`. Its events go where its own configuration says.
    public var store: DiskStore?
    /// What the freshness classes mean.
    public var freshness: FreshnessTable = .standard
    /// How much is kept in memory: bytes, as they are encoded, and a little for each entry. At least 64 KiB.
    public var memoryBytesMaximum = 32 << 20
    /// How many entities, and how many lists, are kept in memory at most; at least 64.
    public var memoryEntriesMaximum = 20_000
    /// How the disk tier is kept; `directory` and `wallClock` are put into it.
    public var disk = DiskStore.Configuration(directory: "")
    /// For how long what memory has is given without a look whether another process has changed the store, which costs some
    /// microseconds and is done when something is read, begins to be observed, or its time has come. Not less than 1 ms.
    public var othersInterval: Duration = .milliseconds(100)
    /// Says what time it is.
    public var wallClock: any WallClock = SystemWallClock()
    /// Says how much time has passed.
    public var monotonicClock: any MonotonicClock = SystemMonotonicClock()
    /// Waits.
    public var sleeper: any Sleeper = SystemSleeper()
    /// Gives numbers from 0 up to but not including 1, by which waits are spread.
    public var random: @Sendable () -> Double = { Double.random(in: 0..<1) }
    /// Makes a key that no other operation ever has.
    public var makeIdempotencyKey: @Sendable () -> String = { RandomKey.make() }
    /// The operations that the outbox shows and sends from the first read on, also those of an earlier process. An operation of a name
    /// that is not registered, here or by `Outbox.register`, is kept and neither shown nor sent (`CacheEvent.unregistered`).
    public var operations: [RegisteredOperation] = []
    /// Has one process at a time send what is in the outbox, where several have one store open; nil: a locked file in the store's
    /// directory, and nothing where everything is in memory.
    public var outboxLock: (any OutboxLock)?
    /// Whether the network may be asked at present. Where it may not, reads behave as if it had failed at once, and nothing is sent.
    /// It is asked more than once for one request, so asking must cost and change nothing. When it becomes true again, call
    /// `LarderCache.networkReturned`.
    public var mayUseNetwork: @Sendable () -> Bool = { true }
    /// What is done by itself at present, and how much of it: a `NetworkMonitor`'s `conduct`. Asked whenever something is to be done,
    /// outside of locks; what holds for longer is taken over by `LarderCache.conductChanged`.
    public var conduct: @Sendable () -> DegradationPolicy.Conduct = { .unrestricted }
    /// Told of what happens; from any thread, never while something is locked.
    public var onEvent: @Sendable (CacheEvent) -> Void = { _ in }

    /// A cache in a directory, which is made with mode 0700 if it is not there; nil: in memory only.
    public init(directory: String? = nil) { self.directory = directory }
}
