import LarderHTTP
import LarderTime

/// How a stored response may be used for a request. Pure.
struct HTTPCacheUse {
    let entry: HTTPCacheEntry
    let requestDirectives: CacheControl
    let terms: CacheControl
    let times: HTTPCacheFreshness
    let policy: HTTPCache.Policy

    init(_ entry: HTTPCacheEntry, _ requestDirectives: CacheControl, _ now: WallTime, _ policy: HTTPCache.Policy) {
        self.entry = entry
        self.requestDirectives = requestDirectives
        self.policy = policy
        terms = CacheControl(response: entry.fields)
        times = HTTPCacheFreshness(entry, now: now, policy: policy)
    }

    /// Whether it must be validated once it is stale, or always.
    var mustValidate: Bool {
        entry.isInvalidated || terms.noCache == .all || (terms.mustRevalidate && !times.isFresh)
    }

    /// Why it may be served as fresh; nil if it may not.
    var freshness: String? {
        guard times.isFresh, let age = times.age, rejection == nil else { return nil }
        var text = "Fresh: \(seconds(age)) old of \(seconds(times.lifetime)) by \(times.source.rawValue)"
        if requestDirectives.maxAge == 0, terms.isImmutable { text += ", and immutable (RFC 8246 §2)" }
        return text + " (RFC 9111 §4.2)."
    }

    /// Why it may not be served as fresh, by precedence; nil if only its age decides.
    private var rejection: String? {
        if entry.isInvalidated { return "A change at its URL made it invalid (RFC 9111 §4.4)" }
        if terms.noCache == .all { return "The response says no-cache (RFC 9111 §5.2.2.4)" }
        if requestDirectives.noCache != .none { return "The request says no-cache (RFC 9111 §5.2.1.4)" }
        guard let age = times.age else { return nil }
        if let limit = requestDirectives.maxAge, age > .seconds(limit) || limit == 0,
            !(terms.isImmutable && times.isFresh)
        {
            return "It is \(seconds(age)) old and the request takes \(limit) s (RFC 9111 §5.2.1.1)"
        }
        if let rest = requestDirectives.minFresh, times.lifetime - age < .seconds(rest) {
            return "It stays fresh for \(seconds(max(.zero, times.lifetime - age))) and the request wants \(rest) s "
                + "(RFC 9111 §5.2.1.3)"
        }
        return nil
    }

    /// Why it is not served immediately.
    var obstacle: String {
        if let rejection { return rejection }
        guard let age = times.age else {
            return "The clock shows a time before the response came, so its age is not known (RFC 9111 §4.2.3)"
        }
        let stale = "Stale: \(seconds(age)) old of \(seconds(times.lifetime)) by \(times.source.rawValue)"
        return stale + (terms.mustRevalidate ? ", and must-revalidate (RFC 9111 §5.2.2.2)" : " (RFC 9111 §4.2)")
    }

    /// Why the request accepts it although it is stale; nil if it does not.
    var maxStale: String? {
        guard let allowed = requestDirectives.maxStale, !mustValidate, rejection == nil, let staleness = times.staleness
        else {
            return nil
        }
        if case .seconds(let limit) = allowed, staleness > .seconds(limit) { return nil }
        return "Stale for \(seconds(staleness)), which the request's max-stale allows (RFC 9111 §5.2.1.2)."
    }

    /// Why it may be served while it is validated; nil if it may not.
    var staleWhileRevalidate: String? {
        guard let window = terms.staleWhileRevalidate, window > 0, !mustValidate, rejection == nil,
            let staleness = times.staleness, !times.isFresh, staleness <= .seconds(window)
        else { return nil }
        return "Stale for \(seconds(staleness)) of the \(window) s of stale-while-revalidate (RFC 5861 §3)."
    }

    /// Why it may be served instead of an error; nil if it may not.
    var staleIfError: String? {
        guard !mustValidate, let staleness = times.staleness else { return nil }
        let allowed = [
            terms.staleIfError.map { Duration.seconds($0) },
            requestDirectives.staleIfError.map { Duration.seconds($0) },
            policy.staleIfError,
        ].compactMap { $0 }.max()
        guard let allowed, allowed > .zero, staleness <= allowed else { return nil }
        return "Stale for \(seconds(staleness)) of \(seconds(allowed)) that an error allows (RFC 5861 §4)."
    }

    /// Why it may be served because there is no reply; nil if it may not.
    var staleWithoutReply: String? {
        // A request that limits the age, such as a refresh, gets the failure unless it allows staleness.
        let isLimited =
            (requestDirectives.maxAge != nil || requestDirectives.minFresh != nil) && requestDirectives.maxStale == nil
        guard policy.servesStaleWithoutReply, !mustValidate, !isLimited, let staleness = times.staleness else {
            return nil
        }
        if case .seconds(let limit)? = requestDirectives.maxStale, staleness > .seconds(limit) { return nil }
        return "Stale for \(seconds(staleness)), but there is no reply (RFC 9111 §4.2.4)."
    }

    private func seconds(_ duration: Duration) -> String { "\(duration.components.seconds) s" }
}
