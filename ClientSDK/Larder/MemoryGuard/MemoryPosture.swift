/// What everything that uses memory is to do now.
public struct MemoryPosture: Sendable, Hashable {
    /// Which pressure this answers; `.normal` while recovering too.
    public var level: MemoryLevel
    /// How far the recovery has come, from 1; nil under pressure, and when everything is as always.
    public var recoveryStep: Int?
    /// The share of their full limits that memory tiers may hold, from 0 to 1.
    public var cacheShare: Double
    /// Whether loads and decodes that are under way, or wait, are given up.
    public var cancelsLoads: Bool
    /// Whether what nobody asked for may be loaded.
    public var allowsPrefetch: Bool
    /// By what the number of loads and decodes at a time is multiplied; at least one is always left.
    public var concurrencyFactor: Double
    /// By what the sides of pictures are multiplied that are decoded from now on.
    public var qualityFactor: Double

    /// A posture.
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

    /// Everything as always.
    public static let normal = MemoryPosture(
        level: .normal,
        cacheShare: 1,
        allowsPrefetch: true,
        concurrencyFactor: 1
    )

    /// A number of loads at a time as it is to be used now: at least 1.
    public func concurrency(_ count: Int) -> Int {
        max(1, Int((Double(max(1, min(count, 1 << 20))) * Self.bounded(concurrencyFactor)).rounded()))
    }

    /// A limit of a memory tier as it is to be used now. A tier without a limit keeps none, unless it must hold nothing.
    public func limit(_ full: Int) -> Int {
        let share = Self.bounded(cacheShare)
        if share == 0 { return 0 }
        return share == 1 || full == .max ? full : Int(Double(full) * share)
    }

    /// What is no number changes nothing.
    private static func bounded(_ factor: Double) -> Double { factor.isNaN ? 1 : min(max(factor, 0), 1) }
}
