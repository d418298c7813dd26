import LarderEvents
import LarderHTTP
public import LarderHTTPCache
import LarderResources
import LarderStorage
import LarderTelemetry
public import LarderTransport

extension APIClient {
    /// Sends any request of the app through the account's HTTP cache (RFC 9111): documents, settings, calls that are no resources.
    ///
    /// Requests to the server's origin are authorized by the session, and sent once more after a 401 if the tokens were renewed. A
    /// request with an `Authorization` field of its own, and one to another origin, is sent as it is. Stored responses are separated by
    /// the account and not by the token, so that a renewed token finds them. While the network may not be used a stored response is
    /// returned, visibly stale, unless its server has forbidden that; otherwise requests fail as `.unreachable`. Resources have their own
    /// store and do not pass this cache. Safe from any task.
    public struct HTTPClient: Transport {
        /// The cache; nil if it is off (`Configuration.httpCacheBytesMaximum`).
        public let cache: HTTPCache?
        let account: AccountTransport
        /// Takes the place of the cache while that is off: it stores nothing.
        let bypass: HTTPCache
        /// Whether the cache is used at present (`FeatureFlags.Key.httpCache`).
        let isCacheOn: @Sendable () -> Bool

        /// A change passes the cache also while that is off: it may be turned on before the reply comes.
        private func current(_ request: TransportRequest) -> HTTPCache {
            isCacheOn() || !request.method.isSafe ? cache ?? bypass : bypass
        }

        /// Sends a request, or returns a stored response.
        ///
        /// - Throws: `.unreachable` if nothing usable is stored and the network may not be used; otherwise the transport's error.
        public func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
            try await current(request).send(account.marked(request))
        }

        /// Opens a response, or a stored one.
        public func open(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
            try await current(request).open(account.marked(request))
        }

        /// Sends a request, or returns a stored response, with its source and the reason.
        public func response(for request: TransportRequest) async throws(TransportError) -> HTTPCache.Response {
            try await current(request).response(for: account.marked(request))
        }

        /// Reads a document.
        ///
        /// - Parameter path: a path of the server, or an absolute URL.
        /// - Throws: `.offline` if it is not stored and the network may not be used or does not answer; `.rejected` with the status if the
        ///   response is not 2xx.
        public func document(_ path: String) async throws(LarderError) -> HTTPCache.Response {
            let url = account.url(path)
            let response: HTTPCache.Response
            do throws(TransportError) { response = try await self.response(for: TransportRequest(url: url)) } catch {
                throw LarderError(error)
            }
            guard (200..<300).contains(response.status.code) else {
                let text = "\(HTTPURL.redacted(url)) returned the status \(response.status.code)."
                throw LarderError(.rejected, text, status: Int(response.status.code))
            }
            return response
        }
    }
}

/// Authorizes requests to the server's origin, below the HTTP cache, which sees the account and not the token, and below the pictures' store.
struct AccountTransport: Transport {
    /// Carries the account through the cache. It is never sent.
    static let marker = FieldName.larderAccount

    let base: any Transport
    let session: BearerSession
    let source: HTTPSource
    /// Whether all requests come through the HTTP cache, where those of the account are marked: another one, as after a redirect from a foreign
    /// origin, is sent without credentials, because its reply is stored for everybody.
    var isBelowCache = false

    /// The account of a request and its own credentials, if it has any.
    static func identity(_ fields: Fields) -> String {
        let own = fields[.authorization].map { "own " + $0 }
        return own ?? fields[marker] ?? ""
    }

    /// The absolute URL of a path of the server.
    func url(_ path: String) -> String { path.hasPrefix("/") ? source.url(path) : path }

    /// The request with its account, if it is to be authorized.
    func marked(_ request: TransportRequest) -> TransportRequest {
        var request = request
        request.fields.remove(Self.marker)
        guard source.takesCredentials(request) else { return request }
        request.fields.set(Self.marker, "user " + (session.userID ?? ""))
        return request
    }

    func open(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
        // A request of the pictures is that of the present user.
        var bare = isBelowCache || request.fields.contains(Self.marker) ? request : marked(request)
        let mark = bare.fields[Self.marker]
        bare.fields.remove(Self.marker)
        guard source.mayUseNetwork() else {
            let url = HTTPURL.redacted(request.url)
            throw TransportError(.unreachable, "The network may not be used; \(url) was not requested.")
        }
        guard let mark else { return try await base.open(bare) }
        return try await LostCopies.sending(bare, error: { $0 }) { [bare] () async throws(TransportError) in
            try await session.sending(
                bare,
                isRejected: { $0.status == .unauthorized },
                failed: { (error, rejection) throws(TransportError) in
                    // The session has ended: the 401 says so.
                    if let rejection, error.code == .unauthorized, !(error.cause is TransportError) { return rejection }
                    throw Self.failure(error, request.url)
                }
            ) { (sent) async throws(TransportError) in
                // The reply would be stored for the account that has asked.
                guard mark == "user " + (session.userID ?? "") else {
                    throw TransportError(
                        .cancelled,
                        "Another user has signed in; \(HTTPURL.redacted(request.url)) was not requested."
                    )
                }
                return try await base.open(sent)
            }
        }
    }

    /// Nothing was sent, or it was rejected with a 401.
    private static func failure(_ error: LarderError, _ url: String) -> TransportError {
        if let cause = error.cause as? TransportError { return cause }
        let text = "\(HTTPURL.redacted(url)) could not be authorized: \(error.description)"
        return TransportError(error.code == .cancelled ? .cancelled : .unreachable, text, retryAfter: error.retryAfter)
    }
}

extension APIClient {
    /// Makes `http`.
    ///
    /// - Parameter store: the store of its cache; nil: it is in memory.
    static func http(
        _ account: AccountTransport,
        _ configuration: Configuration,
        _ settings: CacheConfiguration,
        _ telemetry: Telemetry,
        _ store: DiskStore?,
        isCacheOn: @escaping @Sendable () -> Bool
    ) -> HTTPClient {
        let (mayUseNetwork, onEvent, feature) = (settings.mayUseNetwork, settings.onEvent, configuration.feature)
        func cache(_ storage: any HTTPCacheStorage) -> HTTPCache {
            var caching = HTTPCache.Configuration(storage: storage, clock: settings.wallClock)
            caching.policy.account = { AccountTransport.identity($0) }
            caching.policy.hidesCookies = configuration.keepsCookies
            caching.correctFields = configuration.http.correctFields
            caching.isOffline = { !mayUseNetwork() }
            caching.onStorageFailure = { onEvent(.storageFailed(LarderError($0))) }
            caching.onEvent = { request, event in telemetry.record(event, feature: feature(request)) }
            return HTTPCache(account, caching)
        }
        let bytes = configuration.httpCacheBytesMaximum
        let memory = { (bytes: Int) in DiskHTTPCacheStorage(inMemory: bytes, clock: settings.wallClock) }
        return HTTPClient(
            cache: bytes > 0 ? cache(store.map { DiskHTTPCacheStorage($0) } ?? memory(min(bytes, 16 << 20))) : nil,
            account: account,
            bypass: cache(memory(0)),
            isCacheOn: isCacheOn
        )
    }
}
