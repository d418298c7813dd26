public import LarderEvents

/// The limits that caches and loaders respect at the current pressure level.
public struct MemoryLimits: Sendable, Hashable {
    /// The pressure level; `.normal` during recovery too.
    public var level: MemoryLevel
    /// The step of the recovery, from 1; nil under pressure and in the normal state.
    public var recoveryStep: Int?
    /// The share of their full limits that memory tiers may hold, from 0 to 1.
    public var cacheShare: Double
    /// Whether running and waiting loads and decodes are cancelled.
    public var cancelsLoads: Bool
    /// Whether prefetching is allowed.
    public var allowsPrefetch: Bool
    /// The factor for the number of concurrent loads and decodes; at least one remains.
    public var concurrencyFactor: Double
    /// The factor for the sides of pictures that are decoded from now on.
    public var qualityFactor: Double

    /// Creates limits.
    public init(
        level: MemoryLevel,
        recoveryStep: Int? = nil,
        cacheShare: Double,
        cancelsLoads: Bool = false,
        allowsPrefetch: Bool,
        concurrencyFactor: Double,
        qualityFactor: Double = 1
    ) {
        self.level = level
        self.recoveryStep = recoveryStep
        self.cacheShare = cacheShare
        self.cancelsLoads = cancelsLoads
        self.allowsPrefetch = allowsPrefetch
        self.concurrencyFactor = concurrencyFactor
        self.qualityFactor = qualityFactor
    }

    /// No limits.
    public static let normal = MemoryLimits(
        level: .normal,
        cacheShare: 1,
        allowsPrefetch: true,
        concurrencyFactor: 1
    )

    /// The number of concurrent loads allowed now: at least 1.
    public func concurrency(_ count: Int) -> Int {
        max(1, Int((Double(max(1, min(count, 1 << 20))) * Self.bounded(concurrencyFactor)).rounded()))
    }

    /// The limit of a memory tier allowed now. A tier without a limit keeps none, unless it must hold nothing.
    public func limit(_ full: Int) -> Int {
        let share = Self.bounded(cacheShare)
        if share == 0 { return 0 }
        return share == 1 || full == .max ? full : Int(Double(full) * share)
    }

    /// NaN counts as 1.
    private static func bounded(_ factor: Double) -> Double { factor.isNaN ? 1 : min(max(factor, 0), 1) }
}
