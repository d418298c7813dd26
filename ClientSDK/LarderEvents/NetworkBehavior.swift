import LarderTime

/// Which background work is allowed at the current network level, and how much of it.
public struct NetworkBehavior: Sendable, Hashable {
    /// Whether stale values are refreshed automatically. Otherwise a read returns the stored value without an error.
    public var allowsRefresh: Bool
    /// Whether further pages are fetched during scrolling.
    public var allowsPaging: Bool
    /// Whether prefetching is allowed.
    public var allowsPrefetch: Bool
    /// The factor for how far beyond the visible range lists load pictures (`ImagePipeline.ListPrefetch`), from 0 to 1.
    public var prefetchFactor: Double
    /// Whether a user's refresh and a read that requires the network are attempted. Otherwise they return the stored
    /// value, or fail with one error if there is none.
    public var allowsUserRefresh: Bool
    /// Whether the outbox sends.
    public var sendsOutbox: Bool
    /// The factor for the sides of requested image renditions, from 0 to 1.
    public var renditionFactor: Double
    /// The factor for the number of concurrent loads, and of batches that the outbox sends at once. At least one remains.
    public var concurrencyFactor: Double
    /// The factor for the number of items in one request, within the declared limits.
    public var batchFactor: Double
    /// How long a queued operation waits for others to be sent with it.
    public var batchDelay: Duration
    /// The factors for lifetimes by the name of the freshness class; 1 for other classes. At least 1.
    public var lifetimeFactors: [String: Double]
    /// Whether the network has returned and this client still waits for its turn (`DegradationPolicy.resumeWindow`): no
    /// automatic request begins. Set by the monitor.
    public package(set) var isReturning = false
    /// Whether the network counts as offline only because requests have failed. A person's refresh is then sent whatever
    /// `allowsUserRefresh` says, and its success ends that state. Set by the monitor.
    public package(set) var isOfflineByExperience = false

    /// Whether stale values may be refreshed automatically now.
    public var refreshesByItself: Bool { allowsRefresh && !isReturning }

    /// Whether what waits in the outbox may be sent now, without a new change.
    package var sendsByItself: Bool { sendsOutbox && !isReturning }

    /// No restrictions.
    public static let unrestricted = NetworkBehavior()

    /// Creates a behaviour without restrictions except the given ones.
    public init(
        allowsRefresh: Bool = true,
        allowsPaging: Bool = true,
        allowsPrefetch: Bool = true,
        prefetchFactor: Double = 1,
        allowsUserRefresh: Bool = true,
        sendsOutbox: Bool = true,
        renditionFactor: Double = 1,
        concurrencyFactor: Double = 1,
        batchFactor: Double = 1,
        batchDelay: Duration = .zero,
        lifetimeFactors: [String: Double] = [:]
    ) {
        self.allowsRefresh = allowsRefresh
        self.allowsPaging = allowsPaging
        self.allowsPrefetch = allowsPrefetch
        self.prefetchFactor = prefetchFactor
        self.allowsUserRefresh = allowsUserRefresh
        self.sendsOutbox = sendsOutbox
        self.renditionFactor = renditionFactor
        self.concurrencyFactor = concurrencyFactor
        self.batchFactor = batchFactor
        self.batchDelay = batchDelay
        self.lifetimeFactors = lifetimeFactors
    }

    /// Returns the factor for lifetimes of a class, at least 1.
    public func lifetimeFactor(class name: String) -> Double {
        let factor = lifetimeFactors[name] ?? 1
        return factor.isFinite && factor > 1 ? min(factor, 1e6) : 1
    }

    /// Returns a number of concurrent loads or sends with its factor, at least 1.
    public func concurrency(_ count: Int) -> Int { Self.scaled(count, concurrencyFactor) }

    /// Returns a number of items in one request with its factor, at least 1.
    public func batch(_ count: Int) -> Int { Self.scaled(count, batchFactor) }

    /// Returns a side of an image in pixels with its factor, at least 1.
    public func pixels(_ side: Int) -> Int { Self.scaled(side, min(renditionFactor, 1)) }

    private static func scaled(_ count: Int, _ factor: Double) -> Int {
        guard factor.isFinite, factor >= 0 else { return max(1, count) }
        return max(1, Int(min((Double(count) * factor).rounded(), 1e9)))
    }
}

extension Duration {
    /// Returns the product, at most thirty years.
    package func stretched(by factor: Double) -> Duration { .seconds(min(seconds * factor, 1e9)) }
}
