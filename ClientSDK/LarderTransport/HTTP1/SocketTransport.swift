import LarderCoding
import LarderEvents
import LarderHTTP
public import LarderTLS
public import LarderTime
import Synchronization

/// An HTTP/1.1 client for `http` and `https` URLs over POSIX sockets (RFC 9110, RFC 9112, RFC 8446).
///
/// Connections are reused. If a reused connection ends before the first byte of the response, a request that is idempotent (RFC 9110
/// §9.2.2) or has an idempotency key is sent once more on a new connection; other requests always get a new connection. The addresses of a
/// host are tried as in RFC 8305: the next one 250 ms after the last, beside it. Content is read no faster than the caller takes it. A body
/// in pieces (`TransportRequest.upload`) is read no faster than the server takes it, and sent with its length or in chunks; an early
/// response ends it and its connection. Fields keep their order and repeats. A truncated or invalid response is `.interrupted`. Content
/// without a length or chunks ends with its connection, so its truncation is detected only with TLS. Cancelling closes the connection.
///
/// https uses the system's OpenSSL, which is loaded at the first such request: TLS 1.2 and 1.3, the system's or private roots, pins, client
/// certificates and resumed sessions (`TLSSettings`). A certificate that is not accepted fails with `.untrusted`. Any other failure of
/// the handshake, which counts towards `connectTimeout`, fails with `.unreachable`: nothing of the request was sent.
///
/// A request without `Accept-Encoding` and `Range` offers `gzip` and `deflate`, if the system has zlib. The response is decoded while it is read, and has
/// neither `Content-Encoding` nor `Content-Length` then. Coded content that is truncated or damaged is `.interrupted`, one that
/// expands beyond the limits `.tooLarge`, and a coding that was not offered `.unsupportedCoding`. If the request has
/// `Accept-Encoding`, content is returned as received.
///
/// Requests are sent through a proxy if the environment or `Configuration.proxies` has one for their URL. A proxy that is not reached or
/// cannot connect is `.unreachable`, and one that rejects the request `.proxyRejected`: the server got nothing of it.
///
/// `Host`, `Content-Length` and connection fields are set by the transport. Safe from any task. One thread of the process serves all
/// transports.
///
/// ```swift
/// let response = try await SocketTransport().send(TransportRequest(url: "https://example.com/v1/feed"))
/// print(response.status, response.body.count)
/// ```
public final class SocketTransport: Transport {
    /// Limits and timeouts.
    public struct Configuration: Sendable, Hashable {
        /// The timeout for the response's head, connecting included, and then for each further piece, unless the
        /// request has one. While a body is sent in pieces, the timeout begins anew with each piece of 64 KiB.
        public var timeout: Duration = .seconds(30)
        /// The timeout for connecting to any of the host's addresses, for the tunnel of a proxy and for the TLS handshake, together. Its
        /// failure is `.unreachable`, because nothing was sent. The lookup of the host counts towards `timeout` only.
        public var connectTimeout: Duration = .seconds(10)
        /// The maximum number of connections for each host. Further requests wait in order. So many WebSockets of a host may be opening
        /// beside them; open ones do not count.
        public var connectionsPerHost = 6
        /// How long an idle connection is kept; zero: not at all.
        public var keepAlive: Duration = .seconds(30)
        /// How many bytes of content may wait for the reader of a stream before reading from the connection pauses.
        public var bufferMaximum = 1 << 20
        /// Whether compressed content is offered to be accepted, and decoded.
        public var acceptsCompression = true
        /// How many times larger than the received bytes decoded content may be, judged beyond a mebibyte. More fails with
        /// `.tooLarge`: it would fill memory at little cost for the sender.
        public var expansionMaximum = 250
        /// How servers are checked, and what is shown to them, over https and wss.
        public var tls = TLSSettings()
        /// The proxies, by default those of the environment: `HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`.
        public var proxies = ProxySettings.environment

        /// The defaults.
        public init() {}
    }

    let configuration: Configuration
    let tls: LazyTLSClient
    let clock: any MonotonicClock
    let pool: SocketPool

    /// Creates a transport.
    ///
    /// - Parameters:
    ///   - configuration: limits and timeouts.
    ///   - clock: measures timeouts.
    ///   - wallClock: the time at which certificates must be valid.
    public convenience init(
        _ configuration: Configuration = Configuration(),
        clock: any MonotonicClock = SystemMonotonicClock(),
        wallClock: any WallClock = SystemWallClock()
    ) {
        self.init(configuration, clock: clock, wallClock: wallClock, resolver: .shared)
    }

    /// Creates a transport with a timeout.
    public convenience init(timeout: Duration) {
        var configuration = Configuration()
        configuration.timeout = timeout
        self.init(configuration)
    }

    /// A transport whose sockets are served by a loop of the caller.
    package convenience init(
        _ configuration: Configuration = Configuration(),
        clock: any MonotonicClock,
        loop: SocketLoop
    ) {
        self.init(configuration, clock: clock, resolver: .shared, loop: loop)
    }

    init(
        _ configuration: Configuration,
        clock: any MonotonicClock,
        wallClock: any WallClock = SystemWallClock(),
        resolver: HostResolver,
        loop: SocketLoop = .shared
    ) {
        self.configuration = configuration
        self.clock = clock
        tls = LazyTLSClient(configuration.tls)
        pool = SocketPool(configuration, clock: clock, wallClock: wallClock, resolver: resolver, loop: loop)
    }

    deinit { pool.shut() }

    /// Sends a request and returns when the response's head has arrived.
    public func open(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
        try await Redirection.follow(request) { (hop) async throws(TransportError) in try await self.exchange(hop) }
    }

    /// The server is silent on purpose: `LiveSync.longPoll` decides for how long.
    private static let longPollTimeout = Duration.seconds(3_600)

    private func exchange(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
        let url = try HTTPURL(requested: request.url)
        let offers = configuration.acceptsCompression && Zlib.isAvailable && SocketRequest.offersCodings(request)
        let uploadLength = try await request.upload?.length()
        let proxy = try configuration.proxies.proxy(for: url)
        let bytes = try SocketRequest.bytes(
            request,
            url,
            uploadLength: uploadLength,
            offersCodings: offers,
            // A tunnel has no fields of the proxy in it.
            proxy: url.scheme.isSecure ? nil : proxy
        )
        let exchange = SocketExchange(
            request,
            Endpoint(url, proxy: proxy),
            bytes,
            uploadLength: uploadLength,
            tls: try await secureClient(for: url, within: configuration.connectTimeout),
            bufferMaximum: configuration.bufferMaximum,
            pool: pool
        )
        if Task.isCancelled { throw TransportError(.cancelled, "The request was cancelled before it was sent.") }
        let timeout = request.timeout ?? (request.isLongPoll ? Self.longPollTimeout : configuration.timeout)
        let patience = SocketTimeout(clock: clock, timeout: max(.zero, timeout))
        // Released with the body; its release ends the exchange.
        let retainer = ExchangeRetainer(exchange, self)
        let timer = UploadTimer(patience)
        timer.restart(exchange)
        if request.upload != nil {
            exchange.onUploadProgress { [weak exchange] in if let exchange { timer.restart(exchange) } }
        }
        pool.start(exchange)
        let head = await exchange.head()
        timer.stop()
        let (status, fields) = try head.get()
        if status.code == 407, let proxy, !url.scheme.isSecure {
            throw exchange.afterLostCopy(proxy.rejection(status, of: url.authority))
        }
        let stream = TransportStream(
            status: status,
            fields: fields,
            body: TransportStream.Body { () async throws(TransportError) in
                let exchange = retainer.exchange
                // A piece that is already there needs no timeout.
                if let there = exchange.takeNow() { return try there.get() }
                let timer = patience.begin(exchange)
                defer { timer.cancel() }
                return try await exchange.piece().get()
            }
        )
        guard configuration.acceptsCompression else { return stream }
        return try DecodedContent.decoding(stream, of: request, ratioMaximum: configuration.expansionMaximum)
    }

    func secureClient(for url: HTTPURL, within limit: Duration) async throws(TransportError) -> TLSClient? {
        guard url.scheme.isSecure else { return nil }
        if let made = tls.made { return made }
        do {
            let client = try await within(limit, clock: clock, sleeper: clock) { [tls] in try await tls.get() }
            if let client { return client }
        } catch let error as TLSError {
            throw TransportError(unsent: error)
        } catch is TimeLimitExceeded {
            throw TransportError(.unreachable, "The authorities for certificates could not be read within \(limit).")
        } catch {
            // The only other error is that of a cancelled caller.
        }
        throw TransportError(.cancelled, "The request was cancelled before it was sent.")
    }
}

/// The timeout for the head, which begins anew with each piece of the body that was sent.
private final class UploadTimer: Sendable {
    private struct State {
        var timer: Task<Void, Never>?
        var isStopped = false
    }

    private let patience: SocketTimeout
    private let state = Mutex(State())

    init(_ patience: SocketTimeout) { self.patience = patience }

    func restart(_ exchange: SocketExchange) {
        state.withLock { state in
            state.timer?.cancel()
            state.timer = state.isStopped ? nil : patience.begin(exchange)
        }
    }

    func stop() {
        state.withLock { state in
            state.timer?.cancel()
            state = State(isStopped: true)
        }
    }
}

/// The timeout of an exchange.
private struct SocketTimeout: Sendable {
    let clock: any MonotonicClock
    let timeout: Duration

    /// Ends the exchange after the timeout unless the returned task is cancelled before.
    func begin(_ exchange: SocketExchange) -> Task<Void, Never> {
        let due = clock.uptime + timeout
        return Task { [clock, timeout] in
            do { try await clock.sleep(until: due) } catch { return }
            exchange.timeOut("No data was received for \(timeout).")
        }
    }
}
