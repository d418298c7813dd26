import LarderEvents
import LarderStorage
import LarderTime

/// The facts that the freshness of a value or of a page of a timeline depends on.
struct FreshnessFacts: Sendable, Equatable {
    var times: Freshness.Times
    /// Why it is stale whatever its age is: it was invalidated, or a newer version is known to exist.
    var reason: Freshness.StaleReason?
    /// Whether a part of it is missing, or it is less complete than the reader needs.
    var isPartial = false
    /// The coverage by each change feed, by the feed's name.
    var feeds: [String: FeedCoverage] = [:]
}

/// The period that a change feed covers.
struct FeedCoverage: Sendable, Hashable {
    /// Values that were fetched since this time are covered.
    var since: WallTime
    /// When the feed was last known to have no more changes.
    var caughtUpAt: WallTime
    var caughtUpUptime: MonotonicTime
    var epoch: UInt64
}

extension Freshness.Rule {
    /// The freshness of a value at a time. Pure: it depends on the arguments alone.
    ///
    /// - Parameter fields: the fields that the reader uses.
    func judge(_ facts: FreshnessFacts, fields: Set<String> = [], at now: Moment) -> Freshness {
        if let reason = facts.reason { return .stale(reason) }
        if facts.times.validatedAt == Freshness.Times.never { return .stale(.neverValidated) }
        guard let age = facts.times.age(at: now) else { return .stale(.clockUncertain) }
        if let limit = limit(of: fields), age >= limit { return .stale(.expired) }
        if let reason = criterion.reason(facts, age: age, at: now) { return .stale(reason) }
        return facts.isPartial ? .stale(.partial) : .fresh
    }

    /// How long a value stays fresh from now on, by time alone; nil if time does not end its freshness.
    func remaining(_ facts: FreshnessFacts, fields: Set<String> = [], at now: Moment) -> Duration? {
        guard let age = facts.times.age(at: now) else { return nil }
        let byCriterion = criterion.remaining(facts, age: age, at: now).flatMap { $0 > .zero ? $0 : nil }
        guard let limit = limit(of: fields), limit > age else { return byCriterion }
        return byCriterion.map { min($0, limit - age) } ?? limit - age
    }

    /// The shortest lifetime of those fields that have one.
    private func limit(of fields: Set<String>) -> Duration? {
        // Most readers name no field, and every read comes here.
        fields.isEmpty ? nil : fields.lazy.compactMap { fieldLifetimes[$0] }.min()
    }

    /// The rule with its lifetimes multiplied. Lifetimes of fields stay, because they bound the age of sensitive
    /// values.
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
        // A value of which a newer version is known is stale by any criterion.
        case .version: return nil
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
            // Without a criterion nothing is fresh.
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
        // A check that is too early does no harm.
        case .all(let criteria), .any(let criteria):
            return criteria.compactMap { $0.remaining(facts, age: age, at: now) }.filter { $0 > .zero }.min()
        }
    }

    fileprivate func stretched(by factor: Double) -> Freshness.Criterion {
        switch self {
        case .timeToLive(let duration): .timeToLive(duration.stretched(by: factor))
        // What the source has stated holds on any network.
        case .source(let usual): .source(otherwise: usual.stretched(by: factor))
        // A poor network does not extend what a version or a feed says.
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
