public import LarderHTTP
public import LarderTime

/// What becomes of a `GET` or `HEAD`, given what is stored: a pure function of request, stored responses and time.
public struct HTTPCacheDecision: Sendable, Hashable {
    /// What is done.
    public enum Action: Sendable, Hashable {
        /// The stored response is given out; it is fresh.
        case serve
        /// The stored response is given out though it is stale.
        case serveStale(HTTPCacheStaleReason)
        /// The stored response is given out, and validated meanwhile (RFC 5861 §3).
        case serveWhileRevalidating
        /// The request is sent with these conditions (RFC 9111 §4.3.1).
        case validate(Fields)
        /// The request is sent as it is.
        case forward
        /// Nothing stored suits a request that must not be sent: 504 (§5.2.1.7).
        case gatewayTimeout
        /// The network is known to be away, and nothing stored may be shown.
        case unreachable
    }

    /// What is done.
    public let action: Action
    /// The stored response that it is about: the one that is given out or validated.
    public let entry: HTTPCacheEntry?
    /// Why, in a sentence with the figures and the section of the RFC.
    public let explanation: String

    init(_ action: Action, _ entry: HTTPCacheEntry?, _ explanation: String) {
        self.action = action
        self.entry = entry
        self.explanation = explanation
    }

    /// Decides.
    ///
    /// - Parameters:
    ///   - method: `GET` or `HEAD`; others are always sent.
    ///   - fields: the request's fields.
    ///   - entries: what is stored under the request's URL.
    ///   - now: the present time.
    ///   - policy: the choices that the RFC leaves.
    ///   - isOffline: whether the network is known to be away.
    public static func decide(
        method: Method,
        fields: Fields,
        entries: [HTTPCacheEntry],
        now: WallTime,
        policy: HTTPCachePolicy = HTTPCachePolicy(),
        isOffline: Bool = false
    ) -> HTTPCacheDecision {
        guard method == .get || method == .head else {
            return HTTPCacheDecision(.forward, nil, "\(method) is not answered from the cache (RFC 9111 §3).")
        }
        let wishes = CacheControl(request: fields)
        let isForOrigin = fields.contains(.ifMatch) || fields.contains(.ifUnmodifiedSince)
        if isForOrigin, !isOffline, !wishes.onlyIfCached {
            return HTTPCacheDecision(.forward, nil, "Its conditions are for the server alone (RFC 9111 §4.3.2).")
        }
        if wishes.noStore, !isOffline, !wishes.onlyIfCached {
            return HTTPCacheDecision(.forward, nil, "The request says no-store (RFC 9111 §5.2.1.5).")
        }
        let matching = entries.filter { entry in entry.selectors.allSatisfy { $0.matches(fields) } }
        // The most recent one, by its date (§4.1).
        let chosen = matching.max { ($0.date, $0.receivedAt) < ($1.date, $1.receivedAt) }
        let miss =
            entries.isEmpty
            ? "Nothing is stored for this URL" : "None of \(entries.count) stored variants suits the request's fields"
        guard let entry = chosen else {
            let section = entries.isEmpty ? "RFC 9111 §4" : "RFC 9111 §4.1"
            if wishes.onlyIfCached {
                return HTTPCacheDecision(
                    .gatewayTimeout,
                    nil,
                    "\(miss), and the request says only-if-cached (RFC 9111 §5.2.1.7)."
                )
            }
            if isOffline {
                return HTTPCacheDecision(.unreachable, nil, "\(miss), and there is no network (\(section)).")
            }
            let conditions = method == .get ? HTTPCacheValidation.conditions(nil, entries, fields) : Fields()
            guard conditions.count > 0 else { return HTTPCacheDecision(.forward, nil, "\(miss) (\(section)).") }
            return HTTPCacheDecision(.validate(conditions), nil, "\(miss); the others' tags may do (RFC 9111 §4.3.1).")
        }
        let use = HTTPCacheUse(entry, wishes, now, policy)
        if let explanation = use.freshness { return HTTPCacheDecision(.serve, entry, explanation) }
        if let explanation = use.maxStale { return HTTPCacheDecision(.serveStale(.requested), entry, explanation) }
        if wishes.onlyIfCached {
            return HTTPCacheDecision(
                .gatewayTimeout,
                nil,
                "\(use.obstacle), and the request says only-if-cached (RFC 9111 §5.2.1.7)."
            )
        }
        if isOffline {
            guard !use.mustValidate else {
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
        let conditions = method == .get ? HTTPCacheValidation.conditions(entry, entries, fields) : Fields()
        guard conditions.count > 0 else {
            return HTTPCacheDecision(.forward, entry, "\(use.obstacle), and it has no validator to ask with.")
        }
        return HTTPCacheDecision(.validate(conditions), entry, "\(use.obstacle); the server is asked (RFC 9111 §4.3).")
    }

    /// Whether what is stored may stand in for a failure of the server or of the network; why, if so (RFC 5861 §4).
    public static func standIn(
        _ entry: HTTPCacheEntry,
        for fields: Fields,
        now: WallTime,
        policy: HTTPCachePolicy = HTTPCachePolicy()
    ) -> String? {
        let wishes = CacheControl(request: fields)
        guard !wishes.noStore, wishes.noCache == .none, entry.selectors.allSatisfy({ $0.matches(fields) }) else {
            return nil
        }
        return HTTPCacheUse(entry, wishes, now, policy).staleIfError
    }
}

/// Why a response is given out though it is stale.
public enum HTTPCacheStaleReason: Sendable, Hashable {
    /// The request allows it by `max-stale`.
    case requested
    /// The network is known to be away.
    case offline
    /// It is validated meanwhile.
    case revalidating
    /// The server failed, with this status.
    case serverFailed(Status)
    /// The server could not be reached, for this reason.
    case transportFailed(TransportError.Code)
    /// The reply was not of a kind that the endpoint's rule takes, such as a sign-in page.
    case unexpectedContent
}
