/// By what a value is called fresh.
public indirect enum FreshnessMetric: Sendable, Hashable {
    /// For so long after the server has confirmed it.
    case timeToLive(Duration)
    /// For as long as no newer version is known (`LarderCache.noteVersion`). The 16,384 versions noted last are remembered; where
    /// others were forgotten, what was confirmed before that is stale.
    case version
    /// For as long as the change feed of that name has caught up within the time, and has covered the value since it was fetched.
    case feed(String, within: Duration)
    /// By each of them.
    case all([FreshnessMetric])
    /// By at least one of them.
    case any([FreshnessMetric])
}

/// How much is done for a value's freshness.
public enum FreshnessLevel: Sendable, Hashable {
    /// It is refreshed when somebody reads it.
    case bestEffort
    /// While somebody observes it and the network allows, it is refreshed at least this often.
    case boundedStaleness(Duration)
    /// A read waits for the server unless the value is fresh, and fails rather than giving something stale.
    case validated
}

/// When a resource's values are fresh, and what is done to keep them so.
public struct FreshnessRule: Sendable, Hashable {
    /// By what a value is called fresh.
    public var metric: FreshnessMetric
    /// How much is done for it.
    public var level: FreshnessLevel
    /// Fields that may live shorter than the whole: a reader that uses one (`fields:` of a read) gets the shortest of their times.
    public var fieldLifetimes: [String: Duration]
    /// The class whose factor holds for its times on a bad network (`DegradationPolicy.Conduct.lifetimeFactors`); nil: its times
    /// are exact. A resource that names a class has that one.
    public var family: FreshnessClass?

    /// A rule.
    public init(
        _ metric: FreshnessMetric,
        level: FreshnessLevel = .bestEffort,
        fieldLifetimes: [String: Duration] = [:],
        family: FreshnessClass? = nil
    ) {
        self.metric = metric
        self.level = level
        self.fieldLifetimes = fieldLifetimes
        self.family = family
    }

    /// Fresh for so long after the server has confirmed it.
    public static func timeToLive(_ duration: Duration) -> FreshnessRule { FreshnessRule(.timeToLive(duration)) }
}

/// A name for how much staleness a kind of value bears. What it means is in the `FreshnessTable`.
public struct FreshnessClass: RawRepresentable, Sendable, Hashable {
    /// The class's name.
    public let rawValue: String

    /// A class by its name; one that is not in the table counts as `interactive`.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// What decisions rest on: balances, permissions. Never shown stale.
    public static let critical = FreshnessClass(rawValue: "critical")
    /// What people look at and react to: feeds, profiles.
    public static let interactive = FreshnessClass(rawValue: "interactive")
    /// What seldom changes: countries, terms.
    public static let reference = FreshnessClass(rawValue: "reference")
}

/// What the freshness classes mean, in one place.
public struct FreshnessTable: Sendable, Hashable {
    private var rules: [FreshnessClass: FreshnessRule]

    /// critical: 15 seconds, validated. interactive: one minute. reference: one day.
    public static let standard = FreshnessTable(
        rules: [
            .critical: FreshnessRule(.timeToLive(.seconds(15)), level: .validated),
            .interactive: .timeToLive(.seconds(60)),
            .reference: .timeToLive(.seconds(86_400)),
        ]
    )

    /// The rule of a class.
    public subscript(_ name: FreshnessClass) -> FreshnessRule {
        get { rules[name] ?? rules[.interactive] ?? .timeToLive(.seconds(60)) }
        set { rules[name] = newValue }
    }
}

/// What a resource asks for: a class, or a rule of its own.
public enum FreshnessDemand: Sendable, Hashable {
    /// The rule that the table has for the class.
    case named(FreshnessClass)
    /// A rule of its own.
    case rule(FreshnessRule)

    /// As critical values.
    public static let critical = FreshnessDemand.named(.critical)
    /// As interactive values.
    public static let interactive = FreshnessDemand.named(.interactive)
    /// As reference values.
    public static let reference = FreshnessDemand.named(.reference)
    /// Fresh for so long after the server has confirmed it.
    ///
    /// - Parameter family: the class whose factor holds for the time on a bad network; nil: it is exact.
    public static func timeToLive(_ duration: Duration, as family: FreshnessClass? = nil) -> FreshnessDemand {
        .rule(FreshnessRule(.timeToLive(duration), family: family))
    }

    func rule(in table: FreshnessTable) -> FreshnessRule {
        switch self {
        case .named(let name):
            var rule = table[name]
            rule.family = rule.family ?? name
            return rule
        case .rule(let rule): return rule
        }
    }
}
