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
    var caughtUpUptime: MonotonicTime
}

/// How long a value stays fresh, zero or less if it is not, and why it is stale afterwards.
private typealias Limit = (remaining: Duration, reason: Freshness.StaleReason)

extension Freshness.Rule {
    /// The freshness of a value at a time. Pure: it depends on the arguments alone.
    ///
    /// - Parameter fields: the fields that the reader uses.
    func judge(_ facts: FreshnessFacts, fields: Set<String> = [], at now: Moment) -> Freshness {
        let isConfirmed = facts.times.validatedAt != Freshness.Times.never
        let age = facts.times.age(at: now)
        if isConfirmed, age == nil { return .stale(.clockUncertain) }
        if let reason = facts.reason { return .stale(reason) }
        guard let age else { return .stale(.neverValidated) }
        if let limit = limit(facts, fields, age: age, at: now), limit.remaining <= .zero { return .stale(limit.reason) }
        return facts.isPartial ? .stale(.partial) : .fresh
    }

    /// How long a value stays fresh from now on, by time alone, zero or less if it has expired; nil if time does not end its freshness.
    func remaining(_ facts: FreshnessFacts, fields: Set<String> = [], at now: Moment) -> Duration? {
        facts.times.age(at: now).flatMap { limit(facts, fields, age: $0, at: now)?.remaining }
    }

    private func limit(_ facts: FreshnessFacts, _ fields: Set<String>, age: Duration, at now: Moment) -> Limit? {
        let limit = criterion.limit(facts, age: age, at: now)
        // Most readers name no field, and every read comes here.
        guard !fields.isEmpty, let lifetime = fields.lazy.compactMap({ fieldLifetimes[$0] }).min() else { return limit }
        if let limit, lifetime > age, limit.remaining < lifetime - age { return limit }
        return (lifetime - age, .expired)
    }

    /// The rule with its lifetimes multiplied. Lifetimes of fields stay, because they bound the age of sensitive
    /// values.
    func stretched(by factor: Double) -> Freshness.Rule {
        guard factor != 1 else { return self }
        var rule = self
        rule.criterion = criterion.stretched(by: factor)
        return rule
    }
}

extension Freshness.Criterion {
    /// Nil if time does not end the freshness.
    fileprivate func limit(_ facts: FreshnessFacts, age: Duration, at now: Moment) -> Limit? {
        switch self {
        case .timeToLive(let duration): return (duration - age, .expired)
        case .source(let usual):
            let times = facts.times
            var remaining = times.statedLifetime.map { min($0 - age, times.expiresAt - now.wall) } ?? usual - age
            if times.terms.contains(.hasUnstatedPart) { remaining = min(remaining, usual - age) }
            return (remaining, times.terms.contains(.mustRevalidate) ? .validationRequired : .expired)
        // A value of which a newer version is known is stale by any criterion.
        case .version: return nil
        case .feed(let name, let limit):
            guard let feed = facts.feeds[name], facts.times.fetchedAt >= feed.since,
                // Otherwise it was fetched before the clock was set back.
                facts.times.fetchedAt <= facts.times.validatedAt
            else {
                return (.zero, .feedBehind)
            }
            return (limit - (now.uptime - feed.caughtUpUptime), .feedBehind)
        case .all(let criteria):
            let limits = criteria.compactMap { $0.limit(facts, age: age, at: now) }
            return limits.first { $0.remaining <= .zero } ?? limits.min { $0.remaining < $1.remaining }
        case .any(let criteria):
            let limits = criteria.compactMap { $0.limit(facts, age: age, at: now) }
            guard limits.count == criteria.count else { return nil }
            // Without a criterion nothing is fresh.
            guard let first = limits.first, let last = limits.max(by: { $0.remaining < $1.remaining }) else {
                return (.zero, .expired)
            }
            return last.remaining > .zero ? last : first
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
}
