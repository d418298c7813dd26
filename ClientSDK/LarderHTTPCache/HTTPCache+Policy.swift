public import LarderHTTP

extension HTTPCache {
    /// The choices that RFC 9111 leaves to a cache.
    public struct Policy: Sendable {
        /// The account of a request, computed from its fields, such as the subject of its token; an empty text for anonymous requests. It
        /// keeps the responses of one account from another, beyond the `Vary` of the server, and takes the place of `Authorization` also
        /// where that names the field, so a renewed token finds what was stored under the one before. Nil: the value of `Authorization`,
        /// which is safe with any server; a new token of the same account finds nothing that is stored.
        ///
        /// Called several times for each request, from any thread and outside of locks. It must return the same text for the same account,
        /// and different texts for different accounts. Only a digest is stored.
        public var account: (@Sendable (Fields) -> String)?
        /// Whether cookies are added below the cache, which does not see them: a response whose `Vary` names `Cookie` is not stored. Set it if
        /// the cache's transport is `CookieJar.attached(to:)`; `APIClient` does.
        public var hidesCookies = false
        /// The share of the time since `Last-Modified` for which a response without a stated lifetime is fresh (§4.2.2).
        /// Less than 0 counts as 0, more than 1 as 1.
        public var heuristicFraction = 0.1
        /// The maximum heuristic lifetime.
        public var heuristicMaximum: Duration = .seconds(86_400)
        /// The lifetime of a response that states none and has no `Last-Modified`, if its status allows a heuristic and is no error.
        package var standardLifetime = Duration.zero
        /// Whether a stale response is used when there is no reply: while offline, and after a failed or timed out exchange
        /// (§4.2.4). It is visibly stale: by `HTTPCache.Response.source`, and by its `Age`.
        ///
        /// Not used if the server forbids it (`must-revalidate`, `no-cache`), if a change has invalidated it, or if the
        /// request limits its age (`no-cache`, `max-age`, `min-fresh`) and allows no `max-stale`; while offline the request's
        /// limits do not count.
        public var servesStaleWithoutReply = true
        /// How long a stale response may be used instead of a reply with status 500, 502, 503 or 504 if the server states no
        /// `stale-if-error` (RFC 5861 §4). Has no effect where the server forbids it.
        public var staleIfError: Duration = .zero
        /// The maximum size of stored content, in bytes. Negative values count as 0.
        public var bodyBytesMaximum = 16 << 20
        /// The maximum number of stored responses of one URL; the oldest is removed. Values below 1 count as 1.
        public var variantsMaximum = 16

        /// Creates the default policy.
        public init() {}

        /// Returns the fields by which stored responses are selected for a request.
        func selecting(_ request: Fields) -> Fields {
            guard let account else { return request }
            var fields = request
            fields.set(.authorization, account(request))
            return fields
        }

        /// Returns the fields of a response's `Vary`; nil if no request could match.
        func varying(_ response: Fields) -> [FieldName]? {
            guard case .fields(let names) = Vary(response) else { return nil }
            return hidesCookies && names.contains(.cookie) ? nil : names
        }

        /// Adds a response to those of its URL; beyond `variantsMaximum` the oldest are removed.
        func add(_ entry: HTTPCacheEntry, to entries: inout [HTTPCacheEntry]) {
            entries.append(entry)
            entries.removeFirst(max(0, entries.count - max(1, variantsMaximum)))
        }

        /// Returns the names of the selecting fields: those of the `Vary` and that of the account.
        func selecting(_ names: [FieldName]) -> [FieldName] {
            names.contains(.authorization) ? names : names + [.authorization]
        }
    }
}
