public import LarderTime

/// How an HTTP cache works.
public struct HTTPCacheConfiguration: Sendable {
    /// Where responses are kept.
    public var storage: any HTTPCacheStorage
    /// The choices that RFC 9111 leaves.
    public var policy = HTTPCachePolicy()
    /// What servers say otherwise than they mean.
    public var rules: [HTTPCacheRule] = []
    /// Says what time it is.
    public var clock: any WallClock
    /// Whether the network is known to be away: then nothing is sent, and what is stored is shown however stale, unless the
    /// server forbade it. Called for every `GET` and `HEAD`, from any thread.
    public var isOffline: @Sendable () -> Bool = { false }
    /// Told when the storage failed. The response reaches its caller all the same. Called from any thread, under no lock.
    public var onStorageFailure: @Sendable (any Error) -> Void = { _ in }

    /// A cache on a storage.
    public init(storage: any HTTPCacheStorage, clock: any WallClock = SystemWallClock()) {
        self.storage = storage
        self.clock = clock
    }
}
