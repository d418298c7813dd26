package import LarderHTTP
package import LarderTime

/// The age and the freshness lifetime of a stored response (RFC 9111 §4.2). Pure.
package struct HTTPCacheFreshness: Sendable, Hashable {
    /// The source of a lifetime.
    package enum Source: String, Sendable, Hashable {
        /// `Cache-Control: max-age` (§5.2.2.1).
        case maxAge = "max-age"
        /// `Expires` (§5.3).
        case expires = "Expires"
        /// A share of the time since `Last-Modified` (§4.2.2).
        case heuristic = "a heuristic from Last-Modified"
        /// No lifetime.
        case none = "nothing"
    }

    /// The freshness lifetime, from the generation of the response.
    package let lifetime: Duration
    /// The source of the lifetime.
    package let source: Source
    /// The current age; nil if the clock shows a time before the receipt.
    package let age: Duration?

    /// Whether it is fresh; false if the age is unknown.
    package var isFresh: Bool { age.map { $0 < lifetime } ?? false }

    /// The time beyond its lifetime; zero if fresh, nil if the age is unknown.
    package var staleness: Duration? { age.map { max(.zero, $0 - lifetime) } }

    /// Computes the freshness of an entry at a time.
    package init(_ entry: HTTPCacheEntry, now: WallTime, policy: HTTPCache.Policy = HTTPCache.Policy()) {
        let directives = CacheControl(response: entry.fields)
        (lifetime, source) = Self.lifetime(
            status: entry.status,
            fields: entry.fields,
            directives: directives,
            date: entry.date,
            receivedAt: entry.receivedAt,
            policy: policy
        )
        age = Self.age(entry, now: now)
    }

    /// Returns the stated or the heuristic lifetime (§4.2.1, §4.2.2).
    package static func lifetime(
        status: Status,
        fields: Fields,
        directives: CacheControl,
        date: WallTime,
        receivedAt: WallTime,
        policy: HTTPCache.Policy
    ) -> (Duration, Source) {
        if let seconds = directives.maxAge { return (.seconds(seconds), .maxAge) }
        if let text = fields[.expires] {
            // An invalid date, such as "0", is in the past (§5.3).
            guard let expires = HTTPDate.parse(text, now: receivedAt) else { return (.zero, .expires) }
            return (max(.zero, expires - date), .expires)
        }
        guard status.isHeuristicallyCacheable || directives.isPublic,
            let modified = fields[.lastModified].flatMap({ HTTPDate.parse($0, now: receivedAt) }), modified < date
        else { return (.zero, .none) }
        let fraction = policy.heuristicFraction.isNaN ? 0 : min(1, max(0, policy.heuristicFraction))
        let guess = Double((date - modified).nanosecondsSaturating) * fraction / 1_000_000_000
        return (min(.seconds(Int64(guess)), max(.zero, policy.heuristicMaximum)), .heuristic)
    }

    /// Returns the current age (§4.2.3); nil if the clock was set back to before the receipt.
    private static func age(_ entry: HTTPCacheEntry, now: WallTime) -> Duration? {
        guard now >= entry.receivedAt else { return nil }
        let apparent = max(.zero, entry.receivedAt - entry.date)
        let delay = max(.zero, entry.receivedAt - entry.requestedAt)
        let corrected = .seconds(Age.seconds(in: entry.fields)) + delay
        return max(apparent, corrected) + (now - entry.receivedAt)
    }
}

extension Status {
    /// Whether a status is heuristically cacheable (RFC 9110 §15.1).
    var isHeuristicallyCacheable: Bool {
        [200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501].contains(code)
    }

    /// Whether the cache understands the status: those of RFC 9110 except 206 and 304, which are not complete
    /// responses, and those of RFC 6585.
    var isUnderstood: Bool {
        switch code {
        case 200...205, 300...303, 305, 307, 308, 400...417, 421, 422, 426, 428, 429, 431, 451, 500...505, 511: true
        default: false
        }
    }

    /// Whether the status is a server error for which a stale response may be used (RFC 5861 §4).
    var isServerFailure: Bool { [500, 502, 503, 504].contains(code) }
}
