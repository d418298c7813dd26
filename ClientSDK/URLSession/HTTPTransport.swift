public import Larder
public import LarderTime
import Synchronization

/// `http` and `https`: the one over sockets of our own where Foundation's client is not to be trusted, the other by Foundation,
/// which has TLS.
///
/// On Apple's systems that is `URLSessionTransport` for everything. Elsewhere `http` goes over `SocketTransport`, because
/// Foundation's client ends the process where a server closes within a reply's head and sends again what it takes for lost.
/// Redirections lead from one to the other. Safe from any task.
public final class HTTPTransport: Transport {
    /// How a transport is set up.
    public struct Configuration: Sendable, Hashable {
        /// How long a reply's head may take, and then each further piece, where a request does not say.
        public var timeout: Duration = .seconds(30)
        /// How many connections one host gets at most; further requests wait for one of them.
        public var connectionsPerHost = 6
        /// Whether a redirection is followed (at most 16 times) or given back as the reply that it is.
        public var followsRedirects = true

        /// The defaults.
        public init() {}
    }

    private let configuration: Configuration
    private let clock: any MonotonicClock & Sleeper
    private let sockets: SocketTransport?
    /// Made when it is first needed: a session of Foundation's costs more than many a command.
    private let system = Mutex<URLSessionTransport?>(nil)

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
        #if canImport(FoundationNetworking)
            var ours = SocketTransport.Configuration()
            ours.timeout = configuration.timeout
            ours.connectionsPerHost = configuration.connectionsPerHost
            // A redirection may lead to the other scheme: it is followed here.
            ours.followsRedirects = false
            sockets = SocketTransport(ours, clock: clock)
        #else
            sockets = nil
        #endif
    }

    /// A transport with another timeout than the default.
    public convenience init(timeout: Duration) {
        var configuration = Configuration()
        configuration.timeout = timeout
        self.init(configuration)
    }

    /// Sends a request and gives back the whole reply.
    public func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        guard let sockets else { return try await foundation().send(request) }
        guard configuration.followsRedirects else { return try await transport(for: request, sockets).send(request) }
        return try await Redirection.follow(request) { (hop) async throws(TransportError) in
            try await self.transport(for: hop, sockets).send(hop)
        }
    }

    /// Sends a request and gives back the reply as soon as its head is there.
    public func open(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
        guard let sockets else { return try await foundation().open(request) }
        guard configuration.followsRedirects else { return try await transport(for: request, sockets).open(request) }
        return try await Redirection.follow(request) { (hop) async throws(TransportError) in
            try await self.transport(for: hop, sockets).open(hop)
        }
    }

    private func transport(for request: TransportRequest, _ sockets: SocketTransport) -> any Transport {
        request.url.lowercased().hasPrefix("https:") ? foundation() : sockets
    }

    private func foundation() -> URLSessionTransport {
        system.withLock { system in
            if let system { return system }
            var foreign = URLSessionTransport.Configuration()
            foreign.timeout = configuration.timeout
            foreign.connectionsPerHost = configuration.connectionsPerHost
            foreign.followsRedirects = sockets == nil && configuration.followsRedirects
            let made = URLSessionTransport(foreign, clock: clock)
            system = made
            return made
        }
    }
}
