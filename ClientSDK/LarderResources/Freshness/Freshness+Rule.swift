extension Freshness {
    /// The condition under which a value counts as fresh.
    public indirect enum Criterion: Sendable, Hashable {
        /// For this time after the server has confirmed it.
        case timeToLive(Duration)
        /// For the lifetime that the source has stated, such as `max-age`; if it has stated none, for this time.
        case source(otherwise: Duration)
        /// For as long as no newer version is known (`LarderCache.noteVersion`), whatever its age is.
        case version
        /// While the change feed of that name has caught up within the time, and has covered the value since it was fetched.
        case feed(String, within: Duration)
        /// All of the conditions.
        case all([Freshness.Criterion])
        /// At least one of the conditions.
        case any([Freshness.Criterion])
    }

    /// How freshness is maintained.
    public enum Level: Sendable, Hashable {
        /// The value is refreshed when it is read.
        case bestEffort
        /// While the value is observed and the network allows it, it is refreshed at least this often.
        case boundedStaleness(Duration)
        /// A read waits for the server unless the value is fresh, and fails instead of returning a stale value.
        case validated
    }

    /// When values of a resource are fresh, and how they are kept fresh.
    public struct Rule: Sendable, Hashable {
        /// The condition under which a value is fresh.
        public var criterion: Freshness.Criterion
        /// How freshness is maintained.
        public var level: Freshness.Level
        /// Lifetimes of single fields. A read that names fields (`fields:`) uses the shortest of their lifetimes.
        public var fieldLifetimes: [String: Duration]
        /// The class whose `NetworkBehavior.lifetimeFactors` entry extends the lifetimes on a poor network; nil: never extended. A
        /// resource that names a class has that class.
        public var stretchClass: Freshness.Class?

        /// Creates a rule.
        public init(
            _ criterion: Freshness.Criterion,
            level: Freshness.Level = .bestEffort,
            fieldLifetimes: [String: Duration] = [:],
            stretchClass: Freshness.Class? = nil
        ) {
            self.criterion = criterion
            self.level = level
            self.fieldLifetimes = fieldLifetimes
            self.stretchClass = stretchClass
        }

        /// Fresh for this time after the server has confirmed the value.
        public static func timeToLive(_ duration: Duration) -> Freshness.Rule { Freshness.Rule(.timeToLive(duration)) }
    }

    /// A name for the staleness that a kind of value tolerates. `CacheConfiguration.freshness` maps it to a rule.
    public struct Class: RawRepresentable, Sendable, Hashable {
        /// The class's name.
        public let rawValue: String

        /// A class by its name; a class that is not in the table counts as `interactive`.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// Values that decisions depend on: balances, permissions. Never shown stale.
        public static let critical = Freshness.Class(rawValue: "critical")
        /// Values that people look at and react to: feeds, profiles.
        public static let interactive = Freshness.Class(rawValue: "interactive")
        /// Values that rarely change: countries, terms.
        public static let reference = Freshness.Class(rawValue: "reference")
    }
}

extension [Freshness.Class: Freshness.Rule] {
    /// critical: 15 seconds, validated. interactive: one minute. reference: one day.
    public static var standard: Self {
        [
            .critical: Freshness.Rule(.timeToLive(.seconds(15)), level: .validated),
            .interactive: .timeToLive(.seconds(60)),
            .reference: .timeToLive(.seconds(86_400)),
        ]
    }
}

extension Freshness {
    /// The freshness that a resource asks for: a class, or a rule of its own.
    public enum Demand: Sendable, Hashable {
        /// As the source states (`Freshness.Criterion.source`). If it states nothing, the lifetime of the class in `CacheConfiguration.freshness`.
        case bySource(otherwise: Freshness.Class)
        /// The rule of the class in `CacheConfiguration.freshness`. It overrides the lifetime that the source states.
        case named(Freshness.Class)
        /// A rule of its own. It overrides the lifetime that the source states.
        case rule(Freshness.Rule)

        /// As the source says; if it says nothing, as interactive values.
        public static let source = Freshness.Demand.bySource(otherwise: .interactive)
        /// As critical values.
        public static let critical = Freshness.Demand.named(.critical)
        /// As interactive values.
        public static let interactive = Freshness.Demand.named(.interactive)
        /// As reference values.
        public static let reference = Freshness.Demand.named(.reference)
        /// Fresh for this time after the server has confirmed the value.
        ///
        /// - Parameters:
        ///   - duration: the lifetime from the last validation on.
        ///   - stretchClass: the class whose `NetworkBehavior.lifetimeFactors` entry extends the time on a poor
        ///     network; nil: the time is exact.
        public static func timeToLive(_ duration: Duration, as stretchClass: Freshness.Class? = nil) -> Freshness.Demand
        {
            .rule(Freshness.Rule(.timeToLive(duration), stretchClass: stretchClass))
        }

        package func rule(in table: [Freshness.Class: Freshness.Rule]) -> Freshness.Rule {
            switch self {
            case .bySource(let name):
                var rule = Freshness.Demand.named(name).rule(in: table)
                if case .timeToLive(let duration) = rule.criterion { rule.criterion = .source(otherwise: duration) }
                return rule
            case .named(let name):
                var rule = table[name] ?? table[.interactive] ?? .timeToLive(.seconds(60))
                rule.stretchClass = rule.stretchClass ?? name
                return rule
            case .rule(let rule): return rule
            }
        }
    }
}
