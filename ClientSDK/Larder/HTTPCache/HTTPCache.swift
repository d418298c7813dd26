import LarderHTTP
import LarderTime
import Synchronization

/// A private HTTP cache that stands in front of a transport, and is one itself (RFC 9111).
///
/// It stores what may be stored, gives out what may be given out, asks the server with the validators that it has, lets equal
/// requests share one exchange, and forgets what a change makes invalid. What it decides it can explain:
/// `response(for:)` says where a response came from and why. Failures of the storage are told and never reach a caller.
///
/// Ranges are cut from what is stored whole, under `If-Range` too; parts that a server sends are given on and not stored, so none
/// is ever put together with what it does not belong to (RFC 9111 §3.3 leaves that open).
///
/// Beyond the RFC: responses to requests with different `Authorization` are kept apart (`HTTPCachePolicy`), cookies are not
/// stored, `no-store` is passed by and never reaches the storage. Safe from any task.
public final class HTTPCache: Transport {
    struct State {
        var flights: [FlightKey: HTTPCacheFlight] = [:]
        var background: [ObjectIdentifier: HTTPCacheFlight] = [:]
        var tickets: [ObjectIdentifier: HTTPCacheTicket] = [:]
        var statistics = HTTPCacheStatistics()
    }

    /// What requests must have in common to share an exchange: everything but what they ask of caches.
    struct FlightKey: Hashable {
        let method: Method
        let url: CacheURL
        let fields: Fields
        let timeout: Duration?
        let bodyLimit: Int

        init(_ request: TransportRequest, _ url: CacheURL) {
            method = request.method
            self.url = url
            timeout = request.timeout
            bodyLimit = request.bodyLimit
            var fields = request.fields
            fields.removeAll { $0 == .cacheControl || $0 == .pragma }
            self.fields = fields
        }
    }

    /// How the cache works.
    public let configuration: HTTPCacheConfiguration
    let transport: any Transport
    let state = Mutex(State())

    /// - Parameters:
    ///   - transport: how requests are sent. It must not cache itself.
    ///   - configuration: where responses are kept, and how.
    public init(_ transport: any Transport, _ configuration: HTTPCacheConfiguration) {
        self.transport = transport
        self.configuration = configuration
    }

    /// What the cache has done so far.
    public var statistics: HTTPCacheStatistics { state.withLock { $0.statistics } }

    /// Sends a request, or answers it from what is stored.
    public func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        try await response(for: request).transportResponse
    }

    /// Sends a request, or answers it from what is stored; and tells which of the two, and why.
    ///
    /// - Throws: what the transport throws where nothing stored may stand in; `.unreachable` where the network is known to be
    ///   away; `.tooLarge` where what is stored is more than the request takes.
    public func response(for request: TransportRequest) async throws(TransportError) -> HTTPCacheResponse {
        count { $0.requests += 1 }
        guard let url = CacheURL(request.url) else {
            return try await forward(request, nil, "The URL is none that a cache can name.")
        }
        guard request.method == .get || request.method == .head else {
            return try await forward(request, url, "\(request.method) is not answered from the cache (RFC 9111 §3).")
        }
        guard request.body.isEmpty else {
            return try await forward(
                request,
                url,
                "What content means in a \(request.method) is not known (RFC 9110 §9.3.1)."
            )
        }
        switch look(request, url) {
        case .answer(let response, let plan):
            if let plan { revalidate(plan) }
            guard response.body.count <= request.bodyLimit else {
                throw TransportError(
                    .tooLarge,
                    "\(response.body.count) bytes of content, and the request takes \(request.bodyLimit)."
                )
            }
            return response
        case .refusal(let error): throw error
        case .exchange(let plan): return try await exchangeShared(plan)
        }
    }

    // MARK: Looking

    /// What is to be sent, and what is known before.
    struct Plan: Sendable {
        let request: TransportRequest
        let url: CacheURL
        let entries: [HTTPCacheEntry]
        /// The stored response that the request would get.
        let entry: HTTPCacheEntry?
        /// The conditions that the cache adds.
        let conditions: Fields
        let explanation: String
    }

    enum Look {
        /// An answer; with it, what is to be asked in the background.
        case answer(HTTPCacheResponse, Plan?)
        case refusal(TransportError)
        case exchange(Plan)
    }

    /// Decides what becomes of a `GET` or `HEAD`.
    func look(_ request: TransportRequest, _ url: CacheURL) -> Look {
        var entries = storedEntries(url.text)
        let isOffline = configuration.isOffline()
        while true {
            let now = configuration.clock.now
            let decision = HTTPCacheDecision.decide(
                method: request.method,
                fields: request.fields,
                entries: entries,
                now: now,
                policy: configuration.policy,
                isOffline: isOffline
            )
            var conditions = Fields()
            var source: HTTPCacheResponse.Source?
            switch decision.action {
            case .serve: source = .hit
            case .serveStale(let reason): source = .stale(reason)
            case .serveWhileRevalidating: source = .stale(.revalidating)
            case .validate(let asked): conditions = asked
            case .forward: break
            case .gatewayTimeout:
                let response = HTTPCacheResponse(
                    status: .gatewayTimeout,
                    fields: [.contentLength: "0"],
                    body: [],
                    source: .cacheOnlyMiss,
                    explanation: decision.explanation
                )
                return .answer(response, nil)
            case .unreachable: return .refusal(TransportError(.unreachable, decision.explanation))
            }
            guard let source, let entry = decision.entry else {
                return .exchange(plan(request, url, entries, decision.entry, conditions, decision.explanation))
            }
            guard let body = storedBody(entry, url.text) else {
                // Its content was lost: as if it had never been stored.
                entries.removeAll { $0.bodyID == entry.bodyID }
                change(url.text) { $0.removeAll { $0.bodyID == entry.bodyID } }
                continue
            }
            let response = answer(entry, body, request, source, decision.explanation)
            guard decision.action == .serveWhileRevalidating else { return .answer(response, nil) }
            // A plain request that asks with everything there is: the one that was answered may have had conditions.
            var asking = request
            asking.method = .get
            asking.fields.removeAll { HTTPCacheValidation.own.contains($0) }
            let asked = HTTPCacheValidation.conditions(entry, entries, asking.fields)
            return .answer(response, plan(asking, url, entries, entry, asked, decision.explanation))
        }
    }

    private func plan(
        _ request: TransportRequest,
        _ url: CacheURL,
        _ entries: [HTTPCacheEntry],
        _ entry: HTTPCacheEntry?,
        _ conditions: Fields,
        _ explanation: String
    ) -> Plan {
        Plan(
            request: request,
            url: url,
            entries: entries,
            entry: entry,
            conditions: conditions,
            explanation: explanation
        )
    }

    /// A stored response as an answer, and counted.
    func answer(
        _ entry: HTTPCacheEntry,
        _ body: [UInt8],
        _ request: TransportRequest,
        _ source: HTTPCacheResponse.Source,
        _ explanation: String
    ) -> HTTPCacheResponse {
        let now = configuration.clock.now
        let made = HTTPCacheAnswer.make(
            entry,
            body,
            for: request,
            now: now,
            policy: configuration.policy,
            isConfirmed: source == .revalidated
        )
        count { statistics in
            switch source {
            case .hit: statistics.hits += 1
            case .stale: statistics.stale += 1
            case .revalidated: statistics.revalidations += 1
            case .network, .collapsed, .cacheOnlyMiss: break
            }
            // What is asked for meanwhile is saved only if it is confirmed, and counted then.
            if source != .stale(.revalidating) { statistics.bytesSaved += made.body.count }
        }
        return HTTPCacheResponse(
            status: made.status,
            fields: made.fields,
            body: made.body,
            source: source,
            explanation: explanation,
            times: HTTPCacheResponse.Times(entry, now: now, policy: configuration.policy)
        )
    }

    func count(_ change: (inout HTTPCacheStatistics) -> Void) { state.withLock { change(&$0.statistics) } }
}
