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
        let terms = ResponseTerms(entry, policy: policy)
        lifetime = terms.lifetime
        source = terms.source
        age = now < entry.receivedAt ? nil : terms.age + (now - entry.receivedAt)
    }
}

extension ResponseTerms {
    /// Reads the terms of a stored response.
    init(_ entry: HTTPCacheEntry, policy: HTTPCache.Policy) {
        self.init(
            status: entry.status,
            fields: entry.fields,
            requestedAt: entry.requestedAt,
            receivedAt: entry.receivedAt,
            policy: policy
        )
    }
}

extension Status {
    /// Whether a status is heuristically cacheable (RFC 9110 §15.1).
    package var isHeuristicallyCacheable: Bool {
        [200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501].contains(code)
    }

    /// Whether the cache understands the status: those of RFC 9110 except 304, which is not a response to store, and those of
    /// RFC 6585.
    var isUnderstood: Bool {
        switch code {
        case 200...206, 300...303, 305, 307, 308, 400...417, 421, 422, 426, 428, 429, 431, 451, 500...505, 511: true
        default: false
        }
    }

    /// Whether the status is a server error for which a stale response may be used (RFC 5861 §4).
    var isServerFailure: Bool { [500, 502, 503, 504].contains(code) }
}
