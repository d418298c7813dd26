package import LarderHTTP
package import LarderTime

/// How a `GET` or `HEAD` is answered: a pure function of request, stored responses and time.
package struct HTTPCacheDecision: Sendable, Hashable {
    package enum Action: Sendable, Hashable {
        /// Serve the fresh stored response.
        case serve
        /// Serve the stale stored response.
        case serveStale(HTTPCache.StaleReason)
        /// Serve the stale stored response and validate it in the background (RFC 5861 §3).
        case serveWhileRevalidating
        /// Send the request with these conditions (RFC 9111 §4.3.1).
        case validate(Fields)
        /// Send the request unchanged.
        case forward
        /// Answer 504: the request must not be sent, and no stored response matches (§5.2.1.7).
        case gatewayTimeout
        /// Fail: offline, and no stored response may be used.
        case unreachable
    }

    package let action: Action
    /// The stored response that is served or validated.
    package let entry: HTTPCacheEntry?
    /// The reason, with figures and the RFC section.
    package let explanation: String

    init(_ action: Action, _ entry: HTTPCacheEntry?, _ explanation: String) {
        self.action = action
        self.entry = entry
        self.explanation = explanation
    }

    /// Decides.
    ///
    /// - Parameters:
    ///   - method: `GET` or `HEAD`; other methods are not answered from the cache.
    ///   - fields: the request's fields.
    ///   - entries: the stored responses of the request's URL.
    ///   - now: the current time.
    ///   - policy: the cache's policy.
    ///   - isOffline: whether the device is offline.
    package static func decide(
        method: Method,
        fields: Fields,
        entries: [HTTPCacheEntry],
        now: WallTime,
        policy: HTTPCache.Policy = HTTPCache.Policy(),
        isOffline: Bool = false
    ) -> HTTPCacheDecision {
        let requestDirectives = CacheControl(request: fields)
        let isForOrigin = fields.contains(.ifMatch) || fields.contains(.ifUnmodifiedSince)
        if isForOrigin, !isOffline, !requestDirectives.onlyIfCached {
            return HTTPCacheDecision(.forward, nil, "Its conditions are for the server alone (RFC 9111 §4.3.2).")
        }
        if requestDirectives.noStore, !isOffline, !requestDirectives.onlyIfCached {
            return HTTPCacheDecision(.forward, nil, "The request says no-store (RFC 9111 §5.2.1.5).")
        }
        let selecting = policy.selecting(fields)
        let matching = entries.filter { $0.matches(selecting) }
        // The most recent by date (§4.1).
        let chosen = matching.max { ($0.date, $0.receivedAt) < ($1.date, $1.receivedAt) }
        let miss =
            entries.isEmpty
            ? "Nothing is stored for this URL" : "None of \(entries.count) stored variants suits the request's fields"
        guard let entry = chosen else {
            let section = entries.isEmpty ? "RFC 9111 §4" : "RFC 9111 §4.1"
            if requestDirectives.onlyIfCached {
                return HTTPCacheDecision(
                    .gatewayTimeout,
                    nil,
                    "\(miss), and the request says only-if-cached (RFC 9111 §5.2.1.7)."
                )
            }
            if isOffline {
                return HTTPCacheDecision(.unreachable, nil, "\(miss), and there is no network (\(section)).")
            }
            return HTTPCacheDecision(.forward, nil, "\(miss) (\(section)).")
        }
        let use = HTTPCacheUse(entry, requestDirectives, now, policy)
        if let explanation = use.freshness { return HTTPCacheDecision(.serve, entry, explanation) }
        if let explanation = use.maxStale { return HTTPCacheDecision(.serveStale(.requested), entry, explanation) }
        if requestDirectives.onlyIfCached {
            return HTTPCacheDecision(
                .gatewayTimeout,
                nil,
                "\(use.obstacle), and the request says only-if-cached (RFC 9111 §5.2.1.7)."
            )
        }
        if isOffline {
            guard !use.mustValidate, policy.servesStaleWithoutReply else {
                return HTTPCacheDecision(.unreachable, nil, "\(use.obstacle), and there is no network.")
            }
            return HTTPCacheDecision(
                .serveStale(.offline),
                entry,
                "\(use.obstacle), but there is no network (RFC 9111 §4.2.4)."
            )
        }
        if let explanation = use.staleWhileRevalidate {
            return HTTPCacheDecision(.serveWhileRevalidating, entry, explanation)
        }
        let conditions = method == .get ? HTTPCacheValidation.conditions(entry, entries, fields, policy) : Fields()
        guard conditions.count > 0 else {
            return HTTPCacheDecision(.forward, entry, "\(use.obstacle), and it has no validator to ask with.")
        }
        return HTTPCacheDecision(.validate(conditions), entry, "\(use.obstacle); the server is asked (RFC 9111 §4.3).")
    }

    /// Returns why a stored response may be used instead of a failure of the server or the network (RFC 5861 §4, RFC 9111
    /// §4.2.4); nil if not.
    ///
    /// - Parameter isDisconnected: whether there is no reply at all.
    package static func staleFallback(
        _ entry: HTTPCacheEntry,
        for fields: Fields,
        now: WallTime,
        policy: HTTPCache.Policy = HTTPCache.Policy(),
        isDisconnected: Bool = false
    ) -> String? {
        let requestDirectives = CacheControl(request: fields)
        guard !requestDirectives.noStore, requestDirectives.noCache == .none, entry.matches(policy.selecting(fields))
        else {
            return nil
        }
        let use = HTTPCacheUse(entry, requestDirectives, now, policy)
        return use.staleIfError ?? (isDisconnected ? use.staleWithoutReply : nil)
    }
}
