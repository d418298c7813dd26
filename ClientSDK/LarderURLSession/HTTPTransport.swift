public import LarderTime
public import LarderTransport
import Synchronization

/// A transport for `http` and `https`.
///
/// On Linux `http` uses `SocketTransport`, because Foundation's client traps if a server closes within a response's
/// head and repeats requests after a lost connection; `https` uses `URLSessionTransport`. On Darwin both use
/// `URLSessionTransport`. Redirects are followed here, because they may change the scheme. Safe from any task.
public final class HTTPTransport: Transport {
    /// Limits and timeouts.
    public struct Configuration: Sendable, Hashable {
        /// The timeout for the response's head, and then for each further piece, unless the request has one.
        public var timeout: Duration = .seconds(30)
        /// The maximum number of connections for each host. Further requests wait.
        public var connectionsPerHost = 6

        /// The defaults.
        public init() {}
    }

    private let configuration: Configuration
    private let clock: any MonotonicClock & Sleeper
    private let sockets: SocketTransport?
    /// Created on first use, because a session is expensive.
    private let system = Mutex<URLSessionTransport?>(nil)

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
        #if canImport(FoundationNetworking)
            var ours = SocketTransport.Configuration()
            ours.timeout = configuration.timeout
            ours.connectionsPerHost = configuration.connectionsPerHost
            sockets = SocketTransport(ours, clock: clock)
        #else
            sockets = nil
        #endif
    }

    /// Creates a transport with a timeout.
    public convenience init(timeout: Duration) {
        var configuration = Configuration()
        configuration.timeout = timeout
        self.init(configuration)
    }

    /// Sends a request and returns the complete response.
    public func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        try await Redirection.follow(request) { (hop) async throws(TransportError) in
            try await self.transport(for: hop).send(hop)
        }
    }

    /// Sends a request and returns when the response's head has arrived.
    public func open(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
        try await Redirection.follow(request) { (hop) async throws(TransportError) in
            try await self.transport(for: hop).open(hop)
        }
    }

    private func transport(for request: TransportRequest) -> any Transport {
        guard let sockets, !request.url.lowercased().hasPrefix("https:") else { return foundation() }
        return sockets
    }

    private func foundation() -> URLSessionTransport {
        system.withLock { system in
            if let system { return system }
            var foreign = URLSessionTransport.Configuration()
            foreign.timeout = configuration.timeout
            foreign.connectionsPerHost = configuration.connectionsPerHost
            let made = URLSessionTransport(foreign, clock: clock)
            system = made
            return made
        }
    }
}
