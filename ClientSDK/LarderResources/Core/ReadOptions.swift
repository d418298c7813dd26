import LarderStorage

/// The settings of one read or observer: from its parameters and its resource.
struct ReadOptions: Sendable {
    var policy: ReadPolicy
    var rule: Freshness.Rule
    /// The completeness that a fresh value needs.
    var demands: DiskEntity.Completeness
    /// How long the reader waits for a request; nil: no limit.
    var timeout: Duration?
    /// How much of `timeout` is left to a read that is repeated; nil: all of it. A request that it starts may take the whole `timeout`,
    /// because other readers may join it.
    var remaining: Duration?
    /// Whether the reader gets the value alone, without its freshness.
    var isBare = false
    /// The sensitive fields that the reader uses.
    var fields: Set<String>

    init(_ policy: ReadPolicy, _ rule: Freshness.Rule, demands: Completeness, timeout: Duration?, fields: Set<String>) {
        self.policy = policy
        self.rule = rule
        self.demands = demands.step
        self.timeout = timeout
        self.fields = fields
    }

    /// How long the reader still waits; nil: no limit.
    var wait: Duration? { remaining ?? timeout }

    /// The bound of bounded staleness; nil: none.
    var bound: Duration? {
        guard case .boundedStaleness(let bound) = rule.level, policy.remote != .never else { return nil }
        return bound
    }
}
