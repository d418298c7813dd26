import LarderHTTP
package import LarderTime

/// How a stored response may be used for a request. Pure.
struct HTTPCacheUse {
    let entry: HTTPCacheEntry
    let requestDirectives: CacheControl
    let policy: HTTPCache.Policy
    let terms: ResponseTerms
    /// Its age; nil if the clock shows a time before the receipt.
    let age: Duration?

    init(_ entry: HTTPCacheEntry, _ requestDirectives: CacheControl, _ now: WallTime, _ policy: HTTPCache.Policy) {
        self.entry = entry
        self.requestDirectives = requestDirectives
        self.policy = policy
        terms = ResponseTerms(entry, policy: policy)
        age = entry.age(now: now, terms)
    }

    private var isFresh: Bool { age.map { $0 < terms.lifetime } ?? false }

    /// The time beyond its lifetime; zero if fresh, nil if the age is unknown.
    private var staleness: Duration? { age.map { max(.zero, $0 - terms.lifetime) } }

    /// Whether it must be validated once it is stale, or always.
    var mustValidate: Bool {
        entry.isInvalidated || terms.noCache || (terms.mustRevalidate && !isFresh)
    }

    /// Why it may be served as fresh; nil if it may not.
    var freshness: String? {
        guard isFresh, let age, rejection == nil else { return nil }
        var text = "Fresh: \(seconds(age)) old of \(seconds(terms.lifetime)) by \(terms.source.rawValue)"
        if requestDirectives.maxAge == 0, terms.isImmutable { text += ", and immutable (RFC 8246 §2)" }
        return text + " (RFC 9111 §4.2)."
    }

    /// Why it may not be served as fresh, by precedence; nil if only its age decides.
    private var rejection: String? {
        if entry.isInvalidated { return "A change at its URL made it invalid (RFC 9111 §4.4)" }
        if terms.noCache { return "The response says no-cache (RFC 9111 §5.2.2.4)" }
        if requestDirectives.noCache != .none { return "The request says no-cache (RFC 9111 §5.2.1.4)" }
        guard let age else { return nil }
        if let limit = requestDirectives.maxAge, age > .seconds(limit) || limit == 0,
            !(terms.isImmutable && isFresh)
        {
            return "It is \(seconds(age)) old and the request takes \(limit) s (RFC 9111 §5.2.1.1)"
        }
        if let rest = requestDirectives.minFresh, terms.lifetime - age < .seconds(rest) {
            return "It stays fresh for \(seconds(max(.zero, terms.lifetime - age))) and the request wants \(rest) s "
                + "(RFC 9111 §5.2.1.3)"
        }
        return nil
    }

    /// Why it is not served immediately.
    var obstacle: String {
        if let rejection { return rejection }
        guard let age else {
            return "The clock shows a time before the response came, so its age is not known (RFC 9111 §4.2.3)"
        }
        let stale = "Stale: \(seconds(age)) old of \(seconds(terms.lifetime)) by \(terms.source.rawValue)"
        return stale + (terms.mustRevalidate ? ", and must-revalidate (RFC 9111 §5.2.2.2)" : " (RFC 9111 §4.2)")
    }

    /// Why the request accepts it although it is stale; nil if it does not.
    var maxStale: String? {
        guard let allowed = requestDirectives.maxStale, !mustValidate, rejection == nil, let staleness
        else {
            return nil
        }
        if case .seconds(let limit) = allowed, staleness > .seconds(limit) { return nil }
        return "Stale for \(seconds(staleness)), which the request's max-stale allows (RFC 9111 §5.2.1.2)."
    }

    /// Why it may be served while it is validated; nil if it may not.
    var staleWhileRevalidate: String? {
        let window = terms.staleWhileRevalidate
        guard window > .zero, !mustValidate, rejection == nil, let staleness, !isFresh, staleness <= window else {
            return nil
        }
        return "Stale for \(seconds(staleness)) of the \(seconds(window)) of stale-while-revalidate (RFC 5861 §3)."
    }

    /// Why it may be served instead of an error; nil if it may not.
    var staleIfError: String? {
        guard !mustValidate, let staleness else { return nil }
        let allowed = [
            terms.staleIfError,
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
        guard policy.servesStaleWithoutReply, !mustValidate, !isLimited else { return nil }
        if case .seconds(let limit)? = requestDirectives.maxStale, staleness.map({ $0 > .seconds(limit) }) ?? true {
            return nil
        }
        let words = staleness.map { "Stale for \(seconds($0))" } ?? "Of an age that is not known"
        return words + ", but there is no reply (RFC 9111 §4.2.4)."
    }

    private func seconds(_ duration: Duration) -> String { "\(duration.components.seconds) s" }
}

extension HTTPCacheEntry {
    /// The current age; nil if the clock shows a time before the receipt.
    func age(now: WallTime, _ terms: ResponseTerms) -> Duration? {
        now < receivedAt ? nil : terms.age + (now - receivedAt)
    }

    /// Whether it may be served when it is stale and there is no network, unless a change invalidates it.
    package func mayBeStale(_ policy: HTTPCache.Policy) -> Bool {
        let terms = ResponseTerms(self, policy: policy)
        return policy.servesStaleWithoutReply && !terms.mustRevalidate && !terms.noCache
    }

    /// The period from now in which it may be served to requests without cache directives; nil if each use needs a decision.
    package func freshness(now: WallTime, policy: HTTPCache.Policy) -> Range<WallTime>? {
        let use = HTTPCacheUse(self, CacheControl(request: Fields()), now, policy)
        guard use.freshness != nil, let age = use.age else { return nil }
        return now..<now + (use.terms.lifetime - age)
    }
}
