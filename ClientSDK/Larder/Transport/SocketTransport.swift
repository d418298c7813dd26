public import LarderTime

/// An HTTP/1.1 client on sockets of its own, for `http` URLs on every POSIX system (RFC 9110, RFC 9112).
///
/// Connections are kept and used again. One that turns out to be dead before a byte of the reply has come is replaced once, and
/// only for a method that may be repeated (RFC 9110 §9.2.2); all other requests get a connection that has served nobody.
/// Content comes as it arrives, and no faster than it is read. Fields come in the order and with the repeats that the server
/// sent. A reply that breaks off, or that is not HTTP/1 to the letter, is `.interrupted` and never a short body; only content
/// without any length ends with its connection, and cannot be told from content cut short in order. Cancelling closes the
/// connection.
///
/// It asks for no content coding and decodes none: whoever sends `Accept-Encoding` gets what the server made of it. `Host`,
/// `Content-Length` and what belongs to the connection it says itself. It knows no TLS, no proxies and no cookies;
/// `HTTPTransport` is for both schemes. Safe from any task; one thread of the process serves all transports.
public final class SocketTransport: Transport {
    /// How a transport is set up.
    public struct Configuration: Sendable, Hashable {
        /// How long a reply's head may take, connecting included, and then each further piece, where a request does not say.
        public var timeout: Duration = .seconds(30)
        /// How long it may take to connect to a host whose addresses are found; each of them gets a share. Nothing has happened
        /// at the server then, so the failure is `.unreachable`. Looking the host up counts towards `timeout` alone.
        public var connectTimeout: Duration = .seconds(10)
        /// How long a reply may take in all, to its end; nil for as long as something comes. It is looked at when somebody waits.
        public var totalTimeout: Duration?
        /// How many connections one host gets at most; further requests wait for one of them, in order.
        public var connectionsPerHost = 6
        /// For how long a connection is kept that nobody uses; zero keeps none.
        public var keepAlive: Duration = .seconds(30)
        /// Whether a redirection is followed (at most 16 times) or given back as the reply that it is.
        public var followsRedirects = true
        /// How much content of an opened stream may wait for its reader before the server is kept waiting. Bytes.
        public var bufferMaximum = 1 << 20

        /// The defaults.
        public init() {}
    }

    private let configuration: Configuration
    private let keeper: TimeoutKeeper
    let pool: SocketPool

    /// A transport.
    ///
    /// - Parameters:
    ///   - configuration: limits and habits.
    ///   - clock: measures timeouts.
    public convenience init(
        _ configuration: Configuration = Configuration(),
        clock: any MonotonicClock & Sleeper = SystemMonotonicClock()
    ) {
        self.init(configuration, clock: clock, resolver: .shared)
    }

    /// A transport with another timeout than the default.
    public convenience init(timeout: Duration) {
        var configuration = Configuration()
        configuration.timeout = timeout
        self.init(configuration)
    }

    init(_ configuration: Configuration, clock: any MonotonicClock & Sleeper, resolver: HostResolver) {
        self.configuration = configuration
        keeper = TimeoutKeeper(clock)
        pool = SocketPool(configuration, clock: clock, resolver: resolver)
    }

    deinit { pool.shut() }

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
        guard configuration.followsRedirects else { return try await exchange(request, bufferMaximum) }
        return try await Redirection.follow(request) { (hop) async throws(TransportError) in
            try await self.exchange(hop, bufferMaximum)
        }
    }

    private func exchange(
        _ request: TransportRequest,
        _ bufferMaximum: Int
    ) async throws(TransportError) -> TransportStream {
        let target = try SocketTarget(request.url)
        let exchange = try SocketExchange(request, target, bufferMaximum: bufferMaximum, pool: pool)
        if Task.isCancelled { throw TransportError(.cancelled, "The request was cancelled before it was sent.") }
        let patience = SocketPatience(
            keeper: keeper,
            timeout: max(.zero, request.timeout ?? configuration.timeout),
            total: configuration.totalTimeout
        )
        // Whoever lets go of the body lets go of this, and with it of the exchange.
        let lifeline = ReplyLifeline(exchange, self)
        let timer = patience.begin(exchange)
        pool.start(exchange)
        let head = await exchange.head()
        keeper.remove(timer)
        let (status, fields) = try head.get()
        return TransportStream(
            status: status,
            fields: fields,
            body: TransportBody { () async throws(TransportError) in
                let exchange = lifeline.exchange
                // Most pieces are there when they are asked for, and need no clock.
                if let there = exchange.takeNow() { return try there.get() }
                let timer = patience.begin(exchange)
                let piece = await exchange.piece()
                patience.keeper.remove(timer)
                return try piece.get()
            }
        )
    }
}

/// How long is waited for an exchange.
private struct SocketPatience: Sendable {
    let keeper: TimeoutKeeper
    let timeout: Duration
    private let total: Duration?
    private let end: MonotonicTime?

    init(keeper: TimeoutKeeper, timeout: Duration, total: Duration?) {
        self.keeper = keeper
        self.timeout = timeout
        self.total = total
        end = total.map { keeper.clock.uptime + max(.zero, $0) }
    }

    /// Gives the exchange up when the next step has taken too long, unless the timer is removed before.
    func begin(_ exchange: any ReplyExchange) -> UInt64 {
        let step = keeper.clock.uptime + timeout
        guard let end, let total, end < step else {
            return keeper.set(step) { [timeout] in
                exchange.abandon(TransportError(.timedOut, "Nothing came for \(timeout)."))
            }
        }
        return keeper.set(end) {
            exchange.abandon(TransportError(.timedOut, "The reply was not whole after \(total)."))
        }
    }
}
