package import LarderHTTP
package import LarderTime

/// What a response says about its reuse by a private cache (RFC 9111 §3, §4.2, §4.3.1, §5.2.2): a pure function of
/// status, fields and times.
///
/// A 304 is judged as the 200 that it confirms. What a 304 does not state, the stored response keeps (§3.2): a `source`
/// of `.none` means that no lifetime is stated.
package struct ResponseTerms: Sendable, Hashable {
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

    /// The freshness lifetime, from the generation of the response (§4.2.1, §4.2.2). Never negative.
    package let lifetime: Duration
    /// The source of the lifetime.
    package let source: Source
    /// The age when the response was received (§4.2.3, `corrected_initial_age`). Never negative. The time that has passed
    /// since is to be added.
    package let age: Duration
    /// Whether the response must be validated before each use (§5.2.2.4). False if `no-cache` lists fields.
    package let noCache: Bool
    /// Whether it must not be validated while it is fresh, not even for a reload (RFC 8246).
    let isImmutable: Bool
    /// Whether the response must not be used stale, not even without a network (§5.2.2.2).
    package let mustRevalidate: Bool
    /// How long it may be used stale while it is validated (RFC 5861 §3); zero: not at all.
    package let staleWhileRevalidate: Duration
    /// How long the server allows its use stale instead of an error (RFC 5861 §4); nil: not stated.
    package let staleIfError: Duration?
    /// Whether the response may be stored beyond the exchange, as far as the response decides (§3).
    package let mayStore: Bool

    /// Reads the terms of a response.
    ///
    /// - Parameters:
    ///   - requestedAt: when the request was sent.
    ///   - receivedAt: when the response was received.
    ///   - policy: the choices that RFC 9111 leaves to a cache.
    package init(
        status: Status,
        fields: Fields,
        requestedAt: WallTime,
        receivedAt: WallTime,
        policy: HTTPCache.Policy = HTTPCache.Policy()
    ) {
        func date(_ name: FieldName) -> WallTime? { fields[name].flatMap { HTTPDate.parse($0, now: receivedAt) } }
        let directives = CacheControl(response: fields)
        let status = status == .notModified ? .ok : status
        let generatedAt = date(.date) ?? receivedAt
        let modifiedAt = date(.lastModified)
        noCache = directives.noCache == .all
        isImmutable = directives.isImmutable
        mustRevalidate = directives.mustRevalidate
        staleWhileRevalidate = .seconds(directives.staleWhileRevalidate ?? 0)
        staleIfError = directives.staleIfError.map { .seconds($0) }
        mayStore = Self.rejection(status, fields, directives) == nil
        let apparent = max(.zero, receivedAt - generatedAt)
        let delay = max(.zero, receivedAt - requestedAt)
        age = max(apparent, .seconds(Age.seconds(in: fields)) + delay)
        (lifetime, source) = Self.lifetime(
            status,
            fields,
            directives,
            expires: date(.expires),
            age: modifiedAt.map { generatedAt - $0 },
            date: generatedAt,
            policy
        )
    }

    /// Reads the terms of a stored response.
    package init(_ entry: HTTPCacheEntry, policy: HTTPCache.Policy = HTTPCache.Policy()) {
        self.init(
            status: entry.status,
            fields: entry.fields,
            requestedAt: entry.requestedAt,
            receivedAt: entry.receivedAt,
            policy: policy
        )
    }

    /// Returns why a response must not be stored; nil if it may be.
    static func rejection(_ status: Status, _ fields: Fields, _ directives: CacheControl) -> String? {
        guard status.code >= 200 else { return "\(status.code) is not a final response (RFC 9111 §3)" }
        if directives.mustUnderstand {
            guard status.isUnderstood else {
                return "must-understand, and \(status.code) is not understood (RFC 9111 §5.2.2.3)"
            }
        } else if directives.noStore {
            return "the response says no-store (RFC 9111 §5.2.2.5)"
        }
        let isExplicit =
            directives.isPublic || directives.privateScope != .none || directives.maxAge != nil
            || fields.contains(.expires)
        guard isExplicit || status.isHeuristicallyCacheable else {
            return "nothing allows it for a \(status.code) (RFC 9111 §3)"
        }
        return nil
    }

    private static func lifetime(
        _ status: Status,
        _ fields: Fields,
        _ directives: CacheControl,
        expires: WallTime?,
        age: Duration?,
        date: WallTime,
        _ policy: HTTPCache.Policy
    ) -> (Duration, Source) {
        if let seconds = directives.maxAge { return (.seconds(seconds), .maxAge) }
        if fields.contains(.expires) {
            // An invalid date, such as "0", is in the past (§5.3).
            return (expires.map { max(.zero, $0 - date) } ?? .zero, .expires)
        }
        guard status.isHeuristicallyCacheable || directives.isPublic, let age, age > .zero else {
            let isSuccess = status.isHeuristicallyCacheable && status.code < 400
            return (isSuccess ? policy.standardLifetime : .zero, .none)
        }
        let fraction = policy.heuristicFraction.isNaN ? 0 : min(1, max(0, policy.heuristicFraction))
        let guess = Double(age.nanosecondsSaturating) * fraction / 1_000_000_000
        return (min(.seconds(Int64(guess)), max(.zero, policy.heuristicMaximum)), .heuristic)
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
