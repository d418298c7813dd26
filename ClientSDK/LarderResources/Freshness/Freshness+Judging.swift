import LarderEvents
import LarderStorage
import LarderTime

/// What is known of a value, as far as its freshness depends on it.
struct FreshnessFacts: Sendable {
    var times: Freshness.Times
    var version: Int64?
    var isInvalidated = false
    var isPartial = false
    /// The newest version that anybody has told of.
    var knownVersion: Int64?
    /// What was confirmed up to then may have had a newer known version that was forgotten.
    var versionsForgottenAt = Freshness.Times.never
    /// Since when, and until when, each change feed covers the value.
    var feeds: [String: FeedCoverage] = [:]
}

/// What a change feed vouches for.
struct FeedCoverage: Sendable, Hashable {
    /// Whatever was fetched since then is followed by the feed.
    var since: WallTime
    /// When the feed was last known to have no more changes.
    var caughtUpAt: WallTime
    var caughtUpUptime: MonotonicTime
    var epoch: UInt64
}

extension Freshness.Rule {
    /// What a value is called at a time. Pure: the same facts at the same time give the same answer.
    ///
    /// - Parameter fields: the fields that the reader uses.
    func judge(_ facts: FreshnessFacts, fields: Set<String> = [], at now: Moment) -> Freshness {
        if facts.isInvalidated { return .stale(.invalidated) }
        if facts.times.validatedAt == Freshness.Times.never { return .stale(.neverValidated) }
        guard let age = facts.times.age(at: now) else { return .stale(.clockUncertain) }
        if let limit = limit(of: fields), age >= limit { return .stale(.expired) }
        if let reason = criterion.reason(facts, age: age, at: now) { return .stale(reason) }
        return facts.isPartial ? .stale(.partial) : .fresh
    }

    /// For how long from now on a value stays fresh by time alone; nil where time does not end it.
    func remaining(_ facts: FreshnessFacts, fields: Set<String> = [], at now: Moment) -> Duration? {
        guard let age = facts.times.age(at: now) else { return nil }
        let byCriterion = criterion.remaining(facts, age: age, at: now).flatMap { $0 > .zero ? $0 : nil }
        guard let limit = limit(of: fields), limit > age else { return byCriterion }
        return byCriterion.map { min($0, limit - age) } ?? limit - age
    }

    /// The shortest time to live of those fields that have one of their own.
    private func limit(of fields: Set<String>) -> Duration? {
        // Most readers name none, and every read asks.
        fields.isEmpty ? nil : fields.lazy.compactMap { fieldLifetimes[$0] }.min()
    }

    /// The rule with all times to live multiplied, those of sensitive fields aside: they are short for a reason.
    func stretched(by factor: Double) -> Freshness.Rule {
        guard factor != 1 else { return self }
        var rule = self
        rule.criterion = criterion.stretched(by: factor)
        return rule
    }

    /// When a value with these times expires by time; nil where time does not end its freshness.
    func expiry(of times: Freshness.Times) -> WallTime? { criterion.lifetime(of: times).map { times.validatedAt + $0 } }
}

extension Freshness.Criterion {
    /// Why a value is stale by this criterion; nil while it is fresh.
    fileprivate func reason(_ facts: FreshnessFacts, age: Duration, at now: Moment) -> Freshness.StaleReason? {
        switch self {
        case .timeToLive(let duration):
            return age >= duration ? .expired : nil
        case .source(let usual):
            let times = facts.times
            let isOver =
                times.statedLifetime.map { age >= $0 || now.wall >= times.expiresAt } ?? (age >= usual)
            return !isOver ? nil : times.terms.contains(.mustRevalidate) ? .validationRequired : .expired
        case .version:
            guard let known = facts.knownVersion else {
                return facts.times.validatedAt <= facts.versionsForgottenAt ? .olderVersion : nil
            }
            return facts.version.map { $0 >= known } ?? false ? nil : .olderVersion
        case .feed(let name, let limit):
            guard let feed = facts.feeds[name], feed.epoch == now.epoch, facts.times.fetchedAt >= feed.since else {
                return .feedBehind
            }
            return now.uptime - feed.caughtUpUptime >= limit ? .feedBehind : nil
        case .all(let criteria):
            return criteria.lazy.compactMap { $0.reason(facts, age: age, at: now) }.first
        case .any(let criteria):
            var first: Freshness.StaleReason?
            for criterion in criteria {
                guard let reason = criterion.reason(facts, age: age, at: now) else { return nil }
                first = first ?? reason
            }
            // By nothing at all, nothing is fresh.
            return first ?? .expired
        }
    }

    fileprivate func remaining(_ facts: FreshnessFacts, age: Duration, at now: Moment) -> Duration? {
        switch self {
        case .timeToLive(let duration): return duration - age
        case .source(let usual):
            let times = facts.times
            return times.statedLifetime.map { min($0 - age, times.expiresAt - now.wall) } ?? usual - age
        case .version: return nil
        case .feed(let name, let limit): return facts.feeds[name].map { limit - (now.uptime - $0.caughtUpUptime) }
        // To look again sooner than needed does no harm.
        case .all(let criteria), .any(let criteria):
            return criteria.compactMap { $0.remaining(facts, age: age, at: now) }.filter { $0 > .zero }.min()
        }
    }

    fileprivate func stretched(by factor: Double) -> Freshness.Criterion {
        switch self {
        case .timeToLive(let duration): .timeToLive(duration.stretched(by: factor))
        // What the source has stated holds on any network.
        case .source(let usual): .source(otherwise: usual.stretched(by: factor))
        // What a feed vouches for does not become truer by a bad network.
        case .version, .feed: self
        case .all(let criteria): .all(criteria.map { $0.stretched(by: factor) })
        case .any(let criteria): .any(criteria.map { $0.stretched(by: factor) })
        }
    }

    fileprivate func lifetime(of times: Freshness.Times) -> Duration? {
        switch self {
        case .timeToLive(let duration): duration
        case .source(let usual): times.statedLifetime ?? usual
        case .version, .feed: nil
        case .all(let criteria), .any(let criteria): criteria.compactMap { $0.lifetime(of: times) }.max()
        }
    }
}
