public import LarderEvents

/// The limits at each level of memory pressure and during recovery: a value that can be replaced.
public struct MemoryPolicy: Sendable, Hashable {
    package struct RecoveryStep: Sendable, Hashable {
        /// The duration without new pressure until the next step.
        package var duration: Duration
        /// The limits during the step.
        package var limits: MemoryLimits

        package init(_ duration: Duration, _ limits: MemoryLimits) {
            self.duration = duration
            self.limits = limits
        }
    }

    /// The limits on a warning.
    public var warning: MemoryLimits
    /// The limits on critical pressure.
    public var critical: MemoryLimits
    /// The time for which pressure must be lower, or over, before limits are relaxed.
    public var quietTime: Duration
    /// The steps from pressure back to normal. The guard sets their numbers.
    package var recovery: [RecoveryStep]
    /// The number of times that waiting times double when pressure returns during recovery; they are reset after quiet for as long
    /// as a whole recovery takes.
    public var doublingsMaximum: Int

    package init(
        warning: MemoryLimits,
        critical: MemoryLimits,
        quietTime: Duration,
        recovery: [RecoveryStep],
        doublingsMaximum: Int = 4
    ) {
        self.warning = warning
        self.critical = critical
        self.quietTime = quietTime
        self.recovery = recovery
        self.doublingsMaximum = min(max(0, doublingsMaximum), 16)
    }

    /// Warning: half of the caches, and loads that are not visible are cancelled. Critical: no caches, and loads are cancelled.
    /// Recovery in three steps within 40 s, prefetching last.
    public static let standard = MemoryPolicy(
        warning: MemoryLimits(
            level: .warning,
            cacheShare: 0.5,
            cancelsLoads: true,
            allowsPrefetch: false,
            concurrencyFactor: 0.5,
            qualityFactor: 0.75
        ),
        critical: MemoryLimits(
            level: .critical,
            cacheShare: 0,
            cancelsLoads: true,
            allowsPrefetch: false,
            concurrencyFactor: 0.25,
            qualityFactor: 0.5
        ),
        quietTime: .seconds(5),
        recovery: [
            RecoveryStep(
                .seconds(5),
                MemoryLimits(
                    level: .normal,
                    cacheShare: 0.25,
                    allowsPrefetch: false,
                    concurrencyFactor: 0.5,
                    qualityFactor: 0.75
                )
            ),
            RecoveryStep(
                .seconds(10),
                MemoryLimits(level: .normal, cacheShare: 0.5, allowsPrefetch: false, concurrencyFactor: 0.5)
            ),
            RecoveryStep(
                .seconds(20),
                MemoryLimits(level: .normal, cacheShare: 0.75, allowsPrefetch: false, concurrencyFactor: 1)
            ),
        ]
    )

    /// The limits at a level.
    public subscript(level: MemoryLevel) -> MemoryLimits {
        switch level {
        case .normal: .normal
        case .warning: warning
        case .critical: critical
        }
    }
}
