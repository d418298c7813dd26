import Foundation
import LarderEvents
import LarderHTTP
public import LarderTime
public import LarderTransport

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The transport over Foundation's `URLSession`, with its caching, cookies and credentials turned off.
///
/// Content is passed on in pieces. The system decodes `gzip` and `deflate`; `Content-Length` then counts encoded
/// bytes. Truncated content is `.interrupted`. Cancelling closes the connection. Safe from any task.
///
/// Foundation keeps neither the order of fields nor repeats, which it joins with commas, so fields are sorted by name.
/// It overrides some fields of a request, `Host` and `Content-Length` among them.
///
/// A body in pieces (`TransportRequest.upload`) is sent from a file with its length. One that is not a file is copied to a temporary file
/// first, readable by its owner only and removed at the end, because Foundation cannot read pieces from a task.
///
/// On Linux Foundation stops the process when a connection is closed in order within a reply's head (swift-corelibs-foundation,
/// issue 5285, fixed after Swift 6.3); code above it cannot prevent that on the released toolchains, so `HTTPTransport` uses
/// this transport for `https` alone.
public final class URLSessionTransport: Transport {
    /// Limits and timeouts.
    public struct Configuration: Sendable, Hashable {
        /// The timeout for the response's head, and then for each further piece, unless the request has one.
        public var timeout: Duration = .seconds(30)
        /// The maximum number of connections for each host. Further requests wait.
        public var connectionsPerHost = 6
        /// How many bytes of content may wait for the reader of a stream before the transfer pauses (Darwin) or fails
        /// with `.tooLarge` (Linux, where Foundation cannot pause reliably).
        public var bufferMaximum = 16 << 20

        /// The defaults.
        public init() {}
    }

    private let configuration: Configuration
    private let clock: any MonotonicClock & Sleeper
    private let delegate = URLSessionExchangeDelegate()
    private let session: URLSession
    /// Requests that must not be sent twice have connections of their own; see `isFresh(_:)`.
    private let freshSession: URLSession

    /// Creates a transport.
    ///
    /// - Parameters:
    ///   - configuration: limits and timeouts.
    ///   - clock: measures timeouts.
    public init(
        _ configuration: Configuration = Configuration(),
        clock: any MonotonicClock & Sleeper = SystemMonotonicClock()
    ) {
        self.configuration = configuration
        self.clock = clock
        session = Self.session(configuration, delegate)
        freshSession = Self.session(configuration, delegate)
    }

    /// Creates a transport with a timeout.
    public convenience init(timeout: Duration) {
        var configuration = Configuration()
        configuration.timeout = timeout
        self.init(configuration)
    }

    deinit {
        // A session retains its delegate until it is invalidated.
        session.invalidateAndCancel()
        freshSession.invalidateAndCancel()
    }

    private static func session(_ configuration: Configuration, _ delegate: URLSessionExchangeDelegate) -> URLSession {
        let foreign = URLSessionConfiguration.ephemeral
        foreign.urlCache = nil
        foreign.requestCachePolicy = .reloadIgnoringLocalCacheData
        foreign.httpCookieStorage = nil
        foreign.httpShouldSetCookies = false
        foreign.httpCookieAcceptPolicy = .never
        foreign.urlCredentialStorage = nil
        foreign.httpMaximumConnectionsPerHost = max(1, configuration.connectionsPerHost)
        // Timeouts are measured here, because Foundation on Linux supports only whole seconds and the system's clock.
        foreign.timeoutIntervalForRequest = 7 * 86_400
        return URLSession(configuration: foreign, delegate: delegate, delegateQueue: nil)
    }

    /// Sends a request and returns the complete response.
    public func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        // `bodyLimit` bounds a complete response, so no smaller buffer is needed.
        try await open(request, bufferMaximum: .max).whole()
    }

    /// Sends a request and returns when the response's head has arrived.
    public func open(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
        try await open(request, bufferMaximum: configuration.bufferMaximum)
    }

    private func open(
        _ request: TransportRequest,
        bufferMaximum: Int
    ) async throws(TransportError) -> TransportStream {
        try await Redirection.follow(request) { (hop) async throws(TransportError) in
            try await self.exchange(hop, bufferMaximum)
        }
    }

    private func exchange(
        _ request: TransportRequest,
        _ bufferMaximum: Int
    ) async throws(TransportError) -> TransportStream {
        let foreign = try foreign(request)
        var upload: URLSessionUpload?
        if let body = request.upload { upload = try await URLSessionUpload(body, length: try await body.length()) }
        if Task.isCancelled { throw TransportError(.cancelled, "The request was cancelled before it was sent.") }
        let session = isFresh(request) ? freshSession : session
        let exchange = URLSessionExchange(
            upload.map { session.uploadTask(with: foreign, fromFile: $0.url) } ?? session.dataTask(with: foreign),
            upload,
            clock,
            bodyLimit: request.bodyLimit,
            bufferMaximum: bufferMaximum
        )
        delegate.start(exchange)
        let timeout = max(.zero, request.timeout ?? configuration.timeout)
        // Released with the body; its release ends the exchange.
        let retainer = ExchangeRetainer(exchange, self)
        let clock = clock
        let head = await self.head(of: exchange, timeout)
        guard let head else { throw Self.late(exchange, timeout) }
        let (status, fields) = try head.get()
        return TransportStream(
            status: status,
            fields: fields,
            body: TransportStream.Body { () async throws(TransportError) in
                let exchange = retainer.exchange
                // A piece that is already there needs no timeout.
                if let there = exchange.takeNow() { return try there.get() }
                let piece = await until(clock.uptime + timeout, by: clock) { await exchange.piece() }
                guard let piece else { throw Self.late(exchange, timeout) }
                return try piece.get()
            }
        )
    }

    /// Waits for the head; nil if nothing was received for the timeout, and no piece of the body was sent.
    private func head(of exchange: URLSessionExchange, _ timeout: Duration) async -> ReplyInbox.Head? {
        let clock = clock
        guard let upload = exchange.upload else {
            return await until(clock.uptime + timeout, by: clock) { await exchange.head() }
        }
        return await upload.untilIdle(for: timeout, clock) { await exchange.head() }
    }

    private static func late(_ exchange: any ReplyExchange, _ timeout: Duration) -> TransportError {
        let error = TransportError(.timedOut, "No data was received for \(timeout).")
        exchange.abandon(error)
        return error
    }

    private func foreign(_ request: TransportRequest) throws(TransportError) -> URLRequest {
        guard let url = URL(string: request.url), let scheme = url.scheme?.lowercased(), url.host != nil,
            scheme == "http" || scheme == "https"
        else {
            throw TransportError(
                .invalidURL,
                "'\(HTTPURL.redacted(request.url))' is not an absolute http or https URL."
            )
        }
        guard request.body.isEmpty || request.upload == nil else {
            throw TransportError(.invalidRequest, "The request has both 'body' and 'upload'. Set one of them.")
        }
        var foreign = URLRequest(url: url)
        foreign.httpMethod = request.method.rawValue
        for field in request.fieldsWithContentType {
            foreign.addValue(field.value, forHTTPHeaderField: field.name.description)
        }
        if !request.body.isEmpty { foreign.httpBody = Data(request.body) }
        if isFresh(request) { foreign.setValue("close", forHTTPHeaderField: "Connection") }
        return foreign
    }

    /// Whether a request gets a connection that has not been used.
    ///
    /// On Linux libcurl sends any request again, whatever its method, when a connection that it had kept closes without a
    /// reply. Foundation cannot give it the content a second time, so the server waits for that in vain and answers 408; and
    /// one that has none would be carried out twice. A connection that is used once is never suspected of being stale.
    /// Requests without content that are safe to repeat keep theirs.
    private func isFresh(_ request: TransportRequest) -> Bool {
        #if canImport(FoundationNetworking)
            !request.method.isIdempotent || request.hasContent
        #else
            false
        #endif
    }
}
