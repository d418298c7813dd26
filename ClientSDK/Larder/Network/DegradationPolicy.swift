/// What the SDK does by itself at each level of the network: a value that can be replaced in whole or in part.
///
///     var policy = DegradationPolicy.standard
///     policy.constrained.renditionFactor = 0.25
///     policy.constrained.lifetimeFactors["critical"] = 1
public struct DegradationPolicy: Sendable, Hashable {
    /// What is done at one level.
    public struct Conduct: Sendable, Hashable {
        /// Whether what is stale is refreshed in the background.
        public var allowsRefresh: Bool
        /// Whether further pages are fetched while somebody scrolls.
        public var allowsPaging: Bool
        /// Whether what is not asked for yet is fetched.
        public var allowsPrefetch: Bool
        /// Whether a refresh that a person asks for is tried. What the person gets where it is not is the one clear error.
        public var allowsUserRefresh: Bool
        /// Whether the outbox sends.
        public var sendsOutbox: Bool
        /// By what the sides of pictures are multiplied before one is chosen; from 0 to 1.
        public var renditionFactor: Double
        /// By what the number of loads at a time is multiplied; at least one is always left.
        public var concurrencyFactor: Double
        /// By what the number of things in one request is multiplied.
        public var batchFactor: Double
        /// By what lifetimes are multiplied, by the name of the freshness class; 1 where a class is not named.
        public var lifetimeFactors: [String: Double]

        /// Everything as on a good network, but what is given.
        public init(
            allowsRefresh: Bool = true,
            allowsPaging: Bool = true,
            allowsPrefetch: Bool = true,
            allowsUserRefresh: Bool = true,
            sendsOutbox: Bool = true,
            renditionFactor: Double = 1,
            concurrencyFactor: Double = 1,
            batchFactor: Double = 1,
            lifetimeFactors: [String: Double] = [:]
        ) {
            self.allowsRefresh = allowsRefresh
            self.allowsPaging = allowsPaging
            self.allowsPrefetch = allowsPrefetch
            self.allowsUserRefresh = allowsUserRefresh
            self.sendsOutbox = sendsOutbox
            self.renditionFactor = renditionFactor
            self.concurrencyFactor = concurrencyFactor
            self.batchFactor = batchFactor
            self.lifetimeFactors = lifetimeFactors
        }

        /// A lifetime as it is to be used now. It is never shorter than nothing, and a factor that is no number counts as 1.
        public func lifetime(_ duration: Duration, class name: String) -> Duration {
            let factor = lifetimeFactors[name] ?? 1
            guard factor.isFinite, factor >= 0, factor != 1 else { return duration }
            return .seconds(min(duration.seconds * factor, 1e9))
        }

        /// A number of loads at a time as it is to be used now: at least 1.
        public func concurrency(_ count: Int) -> Int { Self.scaled(count, concurrencyFactor) }

        /// A number of things in one request as it is to be used now: at least 1.
        public func batch(_ count: Int) -> Int { Self.scaled(count, batchFactor) }

        /// A side of a picture in pixels as it is to be used now: at least 1.
        public func pixels(_ side: Int) -> Int { Self.scaled(side, min(renditionFactor, 1)) }

        private static func scaled(_ count: Int, _ factor: Double) -> Int {
            guard factor.isFinite, factor >= 0 else { return max(1, count) }
            return max(1, Int(min((Double(count) * factor).rounded(), 1e9)))
        }
    }

    /// What is done on a good network.
    public var good: Conduct
    /// What is done on one that is slow, lossy, or to be spared.
    public var constrained: Conduct
    /// What is done without one.
    public var offline: Conduct
    /// How far apart clients come back when the network does.
    public var resume: ResumeSpread

    /// A policy.
    public init(good: Conduct, constrained: Conduct, offline: Conduct, resume: ResumeSpread = ResumeSpread()) {
        self.good = good
        self.constrained = constrained
        self.offline = offline
        self.resume = resume
    }

    /// What is done at a level.
    public subscript(level: NetworkLevel) -> Conduct {
        switch level {
        case .offline: offline
        case .constrained: constrained
        case .good: good
        }
    }

    /// Offline nothing is sent that cannot succeed; constrained, less is fetched and in larger batches, and what is not critical
    /// lives longer.
    public static let standard = DegradationPolicy(
        good: Conduct(),
        constrained: Conduct(
            allowsPrefetch: false,
            renditionFactor: 0.5,
            concurrencyFactor: 0.5,
            batchFactor: 2,
            lifetimeFactors: ["interactive": 2, "reference": 4]
        ),
        offline: Conduct(
            allowsRefresh: false,
            allowsPaging: false,
            allowsPrefetch: false,
            allowsUserRefresh: false,
            sendsOutbox: false,
            concurrencyFactor: 0.5
        )
    )

    /// The network's level changes nothing, and nobody waits before coming back.
    public static let none = DegradationPolicy(
        good: Conduct(),
        constrained: Conduct(),
        offline: Conduct(),
        resume: ResumeSpread(window: .zero)
    )
}
