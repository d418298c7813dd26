import LarderHTTP
import LarderHTTPCache
import LarderTime

/// The period in which a picture may be shown without a request to the server.
struct ImageFreshness: Sendable, Hashable {
    /// When it was received or validated: with a clock set back before this, nothing is fresh.
    let from: WallTime
    let until: WallTime

    func holds(at now: WallTime) -> Bool { now >= from && now < until }

    /// The period in which both hold.
    func narrowed(by other: ImageFreshness) -> ImageFreshness {
        ImageFreshness(from: max(from, other.from), until: min(until, other.until))
    }
}

extension HTTPCache.Policy {
    /// The period in which its pixels may be shown for a request with these fields; nil if each use needs a decision.
    func freshness(_ entry: HTTPCacheEntry, _ fields: Fields, now: WallTime) -> ImageFreshness? {
        // Cache directives of the request are evaluated each time.
        guard !fields.contains(.cacheControl), !fields.contains(.pragma) else { return nil }
        let decision = HTTPCacheDecision.decide(
            method: .get,
            fields: fields,
            entries: [entry],
            now: now,
            policy: self
        )
        guard decision.action == .serve else { return nil }
        let times = HTTPCacheFreshness(entry, now: now, policy: self)
        guard let age = times.age else { return nil }
        return ImageFreshness(from: now, until: now + (times.lifetime - age))
    }

    /// Whether a stored response may be used in place of a failure.
    func mayServeStale(_ entry: HTTPCacheEntry, for error: ImageError, _ fields: Fields, now: WallTime) -> Bool {
        switch error.code {
        case .offline, .interrupted, .damaged:
            // Treated as a disconnected cache (RFC 9111 §4.2.4).
            let decision = HTTPCacheDecision.decide(
                method: .get,
                fields: fields,
                entries: [entry],
                now: now,
                policy: self,
                isOffline: true
            )
            return decision.entry != nil && decision.action != .unreachable
        case .status where [500, 502, 503, 504].contains(error.status):
            return HTTPCacheDecision.staleFallback(entry, for: fields, now: now, policy: self) != nil
        default: return false
        }
    }
}
