import Foundation
import LarderHTTP
import Synchronization

/// A server, whether the connection to it is encrypted, and the proxy between.
struct Endpoint: Sendable, Hashable {
    /// In lower case; an IPv6 address without brackets.
    let host: String
    let port: Int
    let isSecure: Bool
    let proxy: Proxy?
    /// Whether the connections become WebSockets: they have a lane of their own.
    let isUpgrade: Bool

    init(host: String, port: Int, isSecure: Bool = false, proxy: Proxy? = nil, isUpgrade: Bool = false) {
        self.host = host
        self.port = port
        self.isSecure = isSecure
        self.proxy = proxy
        self.isUpgrade = isUpgrade
    }

    init(_ url: HTTPURL, proxy: Proxy? = nil) {
        self.init(
            host: url.host,
            port: url.port,
            isSecure: url.scheme.isSecure,
            proxy: proxy,
            isUpgrade: [.ws, .wss].contains(url.scheme)
        )
    }

    /// Why it was not found or not connected to.
    func explained(_ failure: SocketCall.Failure) -> String {
        proxy.map { "The proxy \($0) was not reached. \(failure)" } ?? failure.description
    }

    /// What the socket connects to.
    var peer: Endpoint { Endpoint(host: proxy?.host ?? host, port: proxy?.port ?? port) }
}

/// Looks up hosts on its own threads, because the system's resolver blocks and cannot be interrupted.
///
/// Concurrent lookups of one host share one call, and at most four calls run at a time. Results are not cached,
/// because the system does not report their lifetime. Safe from any thread.
final class HostResolver: Sendable {
    typealias Found = Result<[SocketCall.Address], SocketCall.Failure>

    static let shared = HostResolver { host, port in SocketCall.resolve(host, port: port) }

    private struct State {
        var waiting: [Endpoint: [@Sendable (Found) -> Void]] = [:]
        var queue: [Endpoint] = []
        var threads = 0
    }

    private static let threadsMaximum = 4
    private let look: @Sendable (String, Int) -> Found
    private let state = Mutex(State())

    /// - Parameter look: looks up the addresses of a host and port. It may block.
    init(_ look: @escaping @Sendable (String, Int) -> Found) { self.look = look }

    /// The number of running lookups, for tests.
    var threadCount: Int { state.withLock { $0.threads } }

    /// Calls `done` with the addresses: immediately if the host is an address, otherwise on another thread.
    func addresses(of endpoint: Endpoint, _ done: @escaping @Sendable (Found) -> Void) {
        if case .success(let numeric) = SocketCall.resolve(endpoint.host, port: endpoint.port, isNumeric: true) {
            return done(.success(numeric))
        }
        let starts = state.withLock { state in
            if state.waiting[endpoint] != nil {
                state.waiting[endpoint]?.append(done)
                return false
            }
            state.waiting[endpoint] = [done]
            state.queue.append(endpoint)
            guard state.threads < Self.threadsMaximum else { return false }
            state.threads += 1
            return true
        }
        guard starts else { return }
        let thread = Thread { self.work() }
        thread.name = "larder-resolver"
        thread.start()
    }

    private func work() {
        while let endpoint = next() {
            let found = look(endpoint.host, endpoint.port)
            let waiting = state.withLock { $0.waiting.removeValue(forKey: endpoint) } ?? []
            for done in waiting { done(found) }
        }
    }

    private func next() -> Endpoint? {
        state.withLock { state in
            guard !state.queue.isEmpty else {
                state.threads -= 1
                return nil
            }
            return state.queue.removeFirst()
        }
    }
}
