import LarderHTTP
public import LarderTime

/// How old a stored response is and how long it may be used, by RFC 9111 §4.2. Pure.
public struct HTTPCacheFreshness: Sendable, Hashable {
    /// Where a lifetime comes from.
    public enum Source: String, Sendable, Hashable {
        /// `Cache-Control: max-age` (§5.2.2.1).
        case maxAge = "max-age"
        /// `Expires` (§5.3).
        case expires = "Expires"
        /// A share of the time since `Last-Modified` (§4.2.2).
        case heuristic = "a heuristic from Last-Modified"
        /// Nothing says anything, so there is none.
        case none = "nothing"
    }

    /// For how long the response is fresh, counted from when it was made.
    public let lifetime: Duration
    /// Where the lifetime comes from.
    public let source: Source
    /// How old it is. Nil where the clock shows a time before the response came: then nobody knows.
    public let age: Duration?

    /// Whether it is within its lifetime. Never while its age is not known.
    public var isFresh: Bool { age.map { $0 < lifetime } ?? false }

    /// How far beyond its lifetime it is; zero while it is fresh, nil while its age is not known.
    public var staleness: Duration? { age.map { max(.zero, $0 - lifetime) } }

    /// The freshness of an entry at a time.
    public init(_ entry: HTTPCacheEntry, now: WallTime, policy: HTTPCachePolicy = HTTPCachePolicy()) {
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

    /// The lifetime that a response states, or a guess (§4.2.1, §4.2.2).
    static func lifetime(
        status: Status,
        fields: Fields,
        directives: CacheControl,
        date: WallTime,
        receivedAt: WallTime,
        policy: HTTPCachePolicy
    ) -> (Duration, Source) {
        if let seconds = directives.maxAge { return (.seconds(seconds), .maxAge) }
        if let text = fields[.expires] {
            // What is no date, "0" above all, is a time in the past (§5.3).
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

    /// The age by §4.2.3; nil where the clock has gone back behind the response.
    private static func age(_ entry: HTTPCacheEntry, now: WallTime) -> Duration? {
        guard now >= entry.receivedAt else { return nil }
        let apparent = max(.zero, entry.receivedAt - entry.date)
        let delay = max(.zero, entry.receivedAt - entry.requestedAt)
        let corrected = .seconds(Age.seconds(in: entry.fields)) + delay
        return max(apparent, corrected) + (now - entry.receivedAt)
    }
}

extension Status {
    /// Whether a lifetime may be guessed for responses with this status (RFC 9110 §15.1).
    var isHeuristicallyCacheable: Bool {
        [200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501].contains(code)
    }

    /// Whether this cache knows what the status asks of caches: all of RFC 9110 but 206 and 304, which are no whole responses,
    /// and those of RFC 6585.
    var isUnderstood: Bool {
        switch code {
        case 200...205, 300...303, 305, 307, 308, 400...417, 421, 422, 426, 428, 429, 431, 451, 500...505, 511: true
        default: false
        }
    }

    /// Whether the server could not answer, so that what is stored may stand in (RFC 5861 §4).
    var isServerFailure: Bool { [500, 502, 503, 504].contains(code) }
}
