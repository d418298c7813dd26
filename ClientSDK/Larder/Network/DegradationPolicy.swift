/// What the SDK does by itself at each level of the network: a value that can be replaced in whole or in part.
///
///     var policy = DegradationPolicy.standard
///     policy.constrained.renditionFactor = 0.25
///     policy.constrained.lifetimeFactors["critical"] = 1
public struct DegradationPolicy: Sendable, Hashable {
    /// What is done at one level.
    public struct Conduct: Sendable, Hashable {
        /// Whether what is stale is refreshed by itself. Where it is not, a read gives what there is, without an error.
        public var allowsRefresh: Bool
        /// Whether further pages are fetched while somebody scrolls.
        public var allowsPaging: Bool
        /// Whether what is not asked for yet is fetched.
        public var allowsPrefetch: Bool
        /// Whether a refresh that a person asks for is tried, and a read that demands the network by its policy. What the person
        /// gets where it is not, and where there is nothing to show, is the one clear error.
        public var allowsUserRefresh: Bool
        /// Whether the outbox sends.
        public var sendsOutbox: Bool
        /// By what the sides of pictures are multiplied before one is chosen; from 0 to 1.
        public var renditionFactor: Double
        /// By what the number of loads at a time is multiplied; at least one is always left.
        public var concurrencyFactor: Double
        /// By what the number of things in one request is multiplied, as far as whoever declared it allows.
        public var batchFactor: Double
        /// For how long what is put into the outbox waits for others that can be sent with it.
        public var batchDelay: Duration
        /// By what lifetimes are multiplied, by the name of the freshness class; 1 where a class is not named. Never less than 1.
        public var lifetimeFactors: [String: Double]
        /// Whether the network has come back and this client's turn to return has not (`ResumeSpread`): nothing is begun that
        /// nobody asked for. Set by the monitor.
        public internal(set) var isReturning = false

        /// Whether what is stale may be refreshed by itself now.
        public var refreshesByItself: Bool { allowsRefresh && !isReturning }

        /// Everything, as on a good network.
        public static let unrestricted = Conduct()

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
            batchDelay: Duration = .zero,
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
            self.batchDelay = batchDelay
            self.lifetimeFactors = lifetimeFactors
        }

        /// By what lifetimes of a class are multiplied now: at least 1, and 1 where it is no number.
        public func lifetimeFactor(class name: String) -> Double {
            let factor = lifetimeFactors[name] ?? 1
            return factor.isFinite && factor > 1 ? min(factor, 1e6) : 1
        }

        /// A lifetime as it is to be used now: never shorter than it is.
        public func lifetime(_ duration: Duration, class name: String) -> Duration {
            let factor = lifetimeFactor(class: name)
            return factor == 1 ? duration : duration.stretched(by: factor)
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
            batchDelay: .seconds(2),
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

extension Duration {
    /// The duration multiplied; what would be longer than thirty years is thirty years.
    func stretched(by factor: Double) -> Duration { .seconds(min(seconds * factor, 1e9)) }
}
