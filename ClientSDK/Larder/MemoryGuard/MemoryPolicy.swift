/// What is done about memory pressure, and how the SDK recovers from it: a value that can be replaced.
public struct MemoryPolicy: Sendable, Hashable {
    /// A step of the recovery.
    public struct RecoveryStep: Sendable, Hashable {
        /// How long it lasts without new pressure before the next one begins.
        public var duration: Duration
        /// What is done during it.
        public var posture: MemoryPosture

        /// A step.
        public init(_ duration: Duration, _ posture: MemoryPosture) {
            self.duration = duration
            self.posture = posture
        }
    }

    /// What is done on a warning.
    public var warning: MemoryPosture
    /// What is done when it is critical.
    public var critical: MemoryPosture
    /// For how long pressure must be less, or over, before less is done about it.
    public var quietTime: Duration
    /// The steps from pressure back to everything as always. Each is marked with its number by the guard.
    public var recovery: [RecoveryStep]
    /// How often waiting times double when pressure comes back during a recovery; they become normal again after as long a
    /// time of quiet as a whole recovery takes.
    public var doublingsMaximum: Int

    /// A policy.
    public init(
        warning: MemoryPosture,
        critical: MemoryPosture,
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

    /// On a warning half of the caches go, and what nobody waits for is given up; when it is critical everything goes and loads
    /// are cancelled. Back in three steps within 40 s, prefetch last.
    public static let standard = MemoryPolicy(
        warning: MemoryPosture(
            level: .warning,
            cacheShare: 0.5,
            cancelsLoads: true,
            allowsPrefetch: false,
            concurrencyFactor: 0.5,
            qualityFactor: 0.75
        ),
        critical: MemoryPosture(
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
                MemoryPosture(
                    level: .normal,
                    cacheShare: 0.25,
                    allowsPrefetch: false,
                    concurrencyFactor: 0.5,
                    qualityFactor: 0.75
                )
            ),
            RecoveryStep(
                .seconds(10),
                MemoryPosture(level: .normal, cacheShare: 0.5, allowsPrefetch: false, concurrencyFactor: 0.5)
            ),
            RecoveryStep(
                .seconds(20),
                MemoryPosture(level: .normal, cacheShare: 0.75, allowsPrefetch: false, concurrencyFactor: 1)
            ),
        ]
    )

    /// What is done at a level.
    public subscript(level: MemoryLevel) -> MemoryPosture {
        switch level {
        case .normal: .normal
        case .warning: warning
        case .critical: critical
        }
    }
}
