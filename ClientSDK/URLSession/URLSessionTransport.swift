import Foundation
public import Larder
import LarderHTTP
public import LarderTime

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The transport over Foundation's `URLSession`, with its caching, cookies and credentials turned off.
///
/// Content comes as it arrives; of a `gzip` or `deflate` reply what comes is decoded by the system, and `Content-Length` then
/// tells of the encoded bytes. Content that breaks off (fewer bytes than promised, a broken chunk) is `.interrupted` and never
/// a short body. Cancelling closes the connection. Safe from any task.
///
/// Foundation loses what a dictionary cannot hold: the order of a reply's fields, and repeats, which it joins with commas.
/// Fields are therefore given sorted by name. It overrides some fields of a request, `Host` and `Content-Length` among them.
///
/// On Linux Foundation stops the process when a connection is closed in order within a reply's head (swift-corelibs-foundation,
/// `_NativeProtocol.transferCompleted`, Swift 6.3); nothing above it can prevent that, so `HTTPTransport` takes it there for
/// `https` alone.
public final class URLSessionTransport: Transport {
    /// How a transport is set up.
    public struct Configuration: Sendable, Hashable {
        /// How long a reply's head may take, and then each further piece, where a request does not say.
        public var timeout: Duration = .seconds(30)
        /// How many connections one host gets at most; further requests wait for one of them.
        public var connectionsPerHost = 6
        /// Whether a redirection is followed (at most 16 times) or given back as the reply that it is.
        public var followsRedirects = true
        /// How much content of an opened stream may wait for its reader before the transfer pauses (Apple's systems), or fails
        /// with `.tooLarge` (Linux, where Foundation has no dependable way to pause one). Bytes.
        public var bufferMaximum = 16 << 20

        /// The defaults.
        public init() {}
    }

    private let configuration: Configuration
    private let clock: any MonotonicClock & Sleeper
    private let delegate: URLSessionDelegateOfOurs
    private let session: URLSession
    /// Requests that must not be sent twice have connections of their own; see `isFresh(_:)`.
    private let freshSession: URLSession

    /// A transport.
    ///
    /// - Parameters:
    ///   - configuration: limits and habits.
    ///   - clock: measures timeouts.
    public init(
        _ configuration: Configuration = Configuration(),
        clock: any MonotonicClock & Sleeper = SystemMonotonicClock()
    ) {
        self.configuration = configuration
        self.clock = clock
        delegate = URLSessionDelegateOfOurs(followsRedirects: configuration.followsRedirects)
        session = Self.session(configuration, delegate)
        freshSession = Self.session(configuration, delegate)
    }

    /// A transport with another timeout than the default.
    public convenience init(timeout: Duration) {
        var configuration = Configuration()
        configuration.timeout = timeout
        self.init(configuration)
    }

    deinit {
        // Sessions hold their delegate until they are told to end.
        session.invalidateAndCancel()
        freshSession.invalidateAndCancel()
    }

    private static func session(_ configuration: Configuration, _ delegate: URLSessionDelegateOfOurs) -> URLSession {
        let foreign = URLSessionConfiguration.ephemeral
        foreign.urlCache = nil
        foreign.requestCachePolicy = .reloadIgnoringLocalCacheData
        foreign.httpCookieStorage = nil
        foreign.httpShouldSetCookies = false
        foreign.httpCookieAcceptPolicy = .never
        foreign.urlCredentialStorage = nil
        foreign.httpMaximumConnectionsPerHost = max(1, configuration.connectionsPerHost)
        // Timeouts are ours: Foundation on Linux knows whole seconds only, and no clock but the system's.
        foreign.timeoutIntervalForRequest = 7 * 86_400
        return URLSession(configuration: foreign, delegate: delegate, delegateQueue: nil)
    }

    /// Sends a request and gives back the whole reply.
    public func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        // Whoever wants all of it has said by the limit how much that may be.
        try await open(request, bufferMaximum: .max).whole()
    }

    /// Sends a request and gives back the reply as soon as its head is there.
    public func open(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
        try await open(request, bufferMaximum: configuration.bufferMaximum)
    }

    private func open(
        _ request: TransportRequest,
        bufferMaximum: Int
    ) async throws(TransportError) -> TransportStream {
        let foreign = try foreign(request)
        if Task.isCancelled { throw TransportError(.cancelled, "The request was cancelled before it was sent.") }
        let session = isFresh(request) ? freshSession : session
        let exchange = URLSessionExchange(
            session.dataTask(with: foreign),
            bodyLimit: request.bodyLimit,
            bufferMaximum: bufferMaximum
        )
        delegate.start(exchange)
        let timeout = max(.zero, request.timeout ?? configuration.timeout)
        // Whoever lets go of the body lets go of this, and with it of the exchange.
        let lifeline = ReplyLifeline(exchange, self)
        let clock = clock
        let head = await until(clock.uptime + timeout, by: clock) { await exchange.head() }
        guard let head else { throw Self.late(exchange, timeout) }
        let (status, fields) = try head.get()
        return TransportStream(
            status: status,
            fields: fields,
            body: TransportBody { () async throws(TransportError) in
                let exchange = lifeline.exchange
                // Most pieces are there when they are asked for, and need no clock.
                if let there = exchange.takeNow() { return try there.get() }
                let piece = await until(clock.uptime + timeout, by: clock) { await exchange.piece() }
                guard let piece else { throw Self.late(exchange, timeout) }
                return try piece.get()
            },
            redirectedTo: exchange.redirectedTo
        )
    }

    private static func late(_ exchange: any ReplyExchange, _ timeout: Duration) -> TransportError {
        let error = TransportError(.timedOut, "Nothing came for \(timeout).")
        exchange.abandon(error)
        return error
    }

    private func foreign(_ request: TransportRequest) throws(TransportError) -> URLRequest {
        guard let url = URL(string: request.url), let scheme = url.scheme?.lowercased(), url.host != nil,
            scheme == "http" || scheme == "https"
        else {
            throw TransportError(.invalidURL, "«\(ShownURL.text(request.url))» is not an absolute http or https URL.")
        }
        var foreign = URLRequest(url: url)
        foreign.httpMethod = request.method.rawValue
        for field in request.fields { foreign.addValue(field.value, forHTTPHeaderField: field.name.description) }
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
            !request.method.isIdempotent || !request.body.isEmpty
        #else
            false
        #endif
    }
}
