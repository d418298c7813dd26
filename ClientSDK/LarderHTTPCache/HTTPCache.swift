import LarderEvents
import LarderHTTP
import LarderTime
public import LarderTransport
import Synchronization

/// A private HTTP cache (RFC 9111) over another transport.
///
/// It stores and reuses responses, validates stale ones, lets equal requests share one exchange, and invalidates
/// responses after changes. `response(for:)` returns the source of each response and the reason. Storage failures are
/// reported to `onStorageFailure` and are not thrown.
///
/// Redirects are followed here and not by the transport, so that each response is stored and reused under its own URL.
///
/// Ranges are cut from stored content, also with `If-Range`. Partial responses are passed on and not stored (RFC 9111 §3.3).
///
/// All received fields are stored (§3.1), `Set-Cookie` too; `Configuration.correctFields` can remove fields. Beyond the RFC: `Authorization`
/// selects among responses (`Policy.account`), and `no-store` content never reaches the storage. Safe from
/// any task.
///
/// ```swift
/// let store = try DiskStore(DiskStore.Configuration(directory: "/var/tmp/http-example"))
/// let http = HTTPCache(SocketTransport(), HTTPCache.Configuration(store: store))
/// let response = try await http.response(for: TransportRequest(url: "http://127.0.0.1:8080/v1/feed"))
/// print(response.status, response.source, response.explanation)
/// ```
public final class HTTPCache: Transport {
    /// Its info is whether a person waited for the request that began it.
    typealias Flight = SingleFlight<Bool, HTTPCache.Response, TransportError>

    struct State {
        var flights: [FlightKey: Flight] = [:]
        /// The number of exchanges that have ended.
        var endedFlights: UInt64 = 0
        var background: [ObjectIdentifier: Flight] = [:]
        var tickets: [ObjectIdentifier: HTTPCacheTicket] = [:]
        /// The number of the last refusal for each key whose responses the storage refused to remove or to invalidate; nil stands for all
        /// keys. These responses count as missing.
        var refused: [String?: UInt64] = [:]
        var refusals: UInt64 = 0

        func hides(_ key: String) -> Bool { refused[key] != nil || refused[nil] != nil }
    }

    /// The parts of a request that must be equal to share an exchange: all but cache directives.
    struct FlightKey: Hashable {
        let method: Method
        let key: String
        let fields: Fields
        let timeout: Duration?
        let bodyLimit: Int

        init(_ plan: Plan) {
            let request = plan.request
            method = request.method
            key = plan.key
            timeout = request.timeout
            bodyLimit = request.bodyLimit
            var fields = request.fields
            fields.removeAll { $0 == .cacheControl || $0 == .pragma }
            self.fields = fields
        }
    }

    public let configuration: HTTPCache.Configuration
    let transport: any Transport
    let state = Mutex(State())
    /// Runs the calls of a storage that may block; nil if it does not.
    private let diskWork: DiskExecutor?

    /// - Parameters:
    ///   - transport: sends requests. It must not cache, and must respect `TransportRequest.followsRedirects`. A response
    ///     that it got by following a redirect all the same is not stored.
    ///   - configuration: the storage and the policy. By default responses are kept in memory.
    public init(_ transport: any Transport, _ configuration: HTTPCache.Configuration = .init()) {
        self.transport = transport
        self.configuration = configuration
        diskWork = configuration.storage.mayBlock ? DiskExecutor(threadsMaximum: 4) : nil
    }

    /// Runs a part that uses the storage, on threads for the disk if it may block.
    nonisolated(nonsending) func onDiskThread<Result: Sendable, Failure: Error>(
        _ body: @Sendable () async throws(Failure) -> Result
    ) async throws(Failure) -> Result {
        guard let diskWork else { return try await body() }
        return try await withTaskExecutorPreference(diskWork, operation: body)
    }

    /// Sends a request or serves a stored response.
    public func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        try await response(for: request).reply
    }

    /// Sends a request or serves a stored response, and returns the source and the reason. After redirects these are those
    /// of the last response.
    ///
    /// - Throws: the transport's error if no stored response may be used; `.unreachable` if offline; `.tooLarge` if
    ///   the stored content exceeds the request's `bodyLimit`.
    public func response(for request: TransportRequest) async throws(TransportError) -> HTTPCache.Response {
        try await Redirection.follow(request) { (hop) async throws(TransportError) in
            try await self.respond(to: hop)
        }
    }

    private func respond(to request: TransportRequest) async throws(TransportError) -> HTTPCache.Response {
        guard let url = HTTPURL(request.url) else {
            return try await forward(request, "The URL is not an absolute http or https URL, so the cache is bypassed.")
        }
        guard request.method == .get || request.method == .head else {
            return try await forward(request, "\(request.method) is not answered from the cache (RFC 9111 §3).")
        }
        guard !request.hasContent else {
            return try await forward(
                request,
                "What content means in a \(request.method) is not known (RFC 9110 §9.3.1)."
            )
        }
        var ended: UInt64? = state.withLock { $0.endedFlights }
        while true {
            switch await onDiskThread({ self.look(request, url.text) }) {
            case .answer(let response, let plan):
                if let plan { revalidate(plan) }
                try Self.checkSize(response.body, request)
                return response
            case .rejection(let error): throw error
            case .exchange(let plan):
                if let response = try await exchangeShared(plan, unlessEndedSince: ended) { return response }
                // Looked once more: the exchange that has ended meanwhile may have stored the response.
                ended = nil
            }
        }
    }

    // MARK: Looking

    /// A request to send.
    struct Plan: Sendable {
        let request: TransportRequest
        /// The key of the stored responses of its URL.
        let key: String
        var entries: [HTTPCacheEntry] = []
        /// The stored response that matches the request.
        var entry: HTTPCacheEntry?
        /// The conditions that the cache adds.
        var conditions = Fields()
        let explanation: String
        /// The file that it fetches, for a caller that merges, checks and retries.
        var file: HTTPCacheFile?
        /// The beginning of the file.
        var part: HTTPCachePart?

        /// The request with the conditions.
        var conditional: TransportRequest {
            var request = request
            for field in conditions { request.fields.add(field.name, field.value) }
            return request
        }
    }

    enum Look: Sendable {
        /// A response, and a request to validate it in the background.
        case answer(HTTPCache.Response, Plan?)
        case rejection(TransportError)
        case exchange(Plan)
    }

    /// Decides how a `GET` or `HEAD` is answered.
    func look(_ request: TransportRequest, _ key: String, _ file: HTTPCacheFile? = nil) -> Look {
        let stored = file?.readsStorage == false ? [] : storedEntries(key)
        var entries = stored.filter { !$0.isPart }
        let isOffline = file?.isOffline == true || configuration.isOffline()
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
            var source: HTTPCache.Response.Source?
            switch decision.action {
            case .serve: source = .hit
            case .serveStale(let reason): source = .stale(reason)
            case .serveWhileRevalidating:
                if file?.mustValidate == true, let entry = decision.entry {
                    conditions =
                        HTTPCacheValidation.conditions(entry, entries, request.fields, configuration.policy)
                } else {
                    source = .stale(.revalidating)
                }
            case .validate(let asked): conditions = asked
            case .forward: break
            case .gatewayTimeout:
                let response = HTTPCache.Response(
                    reply: TransportResponse(status: .gatewayTimeout, fields: [.contentLength: "0"]),
                    source: .cacheOnlyMiss,
                    explanation: decision.explanation
                )
                return .answer(response, nil)
            case .unreachable: return .rejection(TransportError(.unreachable, decision.explanation))
            }
            guard let source, let entry = decision.entry else {
                return .exchange(
                    Plan(
                        request: request,
                        key: key,
                        entries: entries,
                        entry: decision.entry,
                        conditions: conditions,
                        explanation: decision.explanation,
                        file: file,
                        part: file.flatMap { part(of: $0, request, stored) }
                    )
                )
            }
            let body: [UInt8]
            switch storedContent(entry, key, file) {
            case .found(let content): body = content
            case .lost:
                // Without its content an entry counts as missing.
                entries.removeAll { $0.bodyID == entry.bodyID }
                change(key) { $0.removeAll { $0.bodyID == entry.bodyID } }
                continue
            case .unreadable:
                // It may be readable later, so it stays.
                entries.removeAll { $0.bodyID == entry.bodyID }
                continue
            }
            let response = answer(entry, body, request, source, decision.explanation)
            guard decision.action == .serveWhileRevalidating else { return .answer(response, nil) }
            // The validation has no conditions of the original request.
            var asking = request
            asking.method = .get
            asking.fields.removeAll { HTTPCacheValidation.conditionFields.contains($0) }
            let asked = HTTPCacheValidation.conditions(entry, entries, asking.fields, configuration.policy)
            let validation = Plan(
                request: asking,
                key: key,
                entries: entries,
                entry: entry,
                conditions: asked,
                explanation: decision.explanation
            )
            return .answer(response, validation)
        }
    }

    /// Makes a response from a stored one and reports it.
    func answer(
        _ entry: HTTPCacheEntry,
        _ body: [UInt8],
        _ request: TransportRequest,
        _ source: HTTPCache.Response.Source,
        _ explanation: String
    ) -> HTTPCache.Response {
        let now = configuration.clock.now
        let made = HTTPCacheAnswer.make(
            entry,
            body,
            for: request,
            now: now,
            policy: configuration.policy,
            isConfirmed: source == .revalidated
        )
        switch source {
        case .hit: configuration.onEvent(request, .hit(bytes: made.body.count, isStale: false))
        case .stale: configuration.onEvent(request, .hit(bytes: made.body.count, isStale: true))
        case .revalidated: configuration.onEvent(request, .revalidated(bytes: made.body.count))
        case .network, .collapsed, .cacheOnlyMiss: break
        }
        return HTTPCache.Response(reply: made, source: source, explanation: explanation, entry: entry)
    }

    /// - Throws: `.tooLarge` if the stored content exceeds the request's limit.
    static func checkSize(_ body: [UInt8], _ request: TransportRequest) throws(TransportError) {
        guard body.count > request.bodyLimit else { return }
        throw TransportError(.tooLarge, "\(body.count) bytes of content, and the request takes \(request.bodyLimit).")
    }
}
